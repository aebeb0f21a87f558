package disposal

// SetAfter has f called after each durable step of a disposal; its error is a crash there.
func SetAfter(k *Keeper, f func(what string) error) { k.after = f }
