// Package remote has steps done by workers on other machines: it offers ready steps, grants
// claims, holds leases, sends and takes bytes, and ends attempts.
//
// It owns who is connected, what is on offer, the leases, the stream's epoch, the secret of the
// nonces, the certificates, and .bagpipe/remote. It must not know Git, nor how a message
// travels: engine/remote/bus has NATS, and engine/attempt commits.
//
// A Remote may be used by several goroutines. Its lock guards offers, loans and workers, and is
// never held over a commit, a message or a file. Run owns the goroutines and waits for them.
//
// # The trip of a step
//
//	May       the engine's dispatcher asks before it takes a step: here, away, or not now
//	Offer     the step is taken from the queue and put into the stream
//	claim     a worker has pulled it: the attempt is committed, with the worker's own engine
//	          identifier in its key, and granted with a nonce and a lease
//	call      the worker fetches what the robot is given
//	beat      the lease begins anew
//	end       the outputs are verified and published, the end is committed
//
// # The fence
//
// An attempt is the worker's while there is a loan of it. A lease that runs out ends the loan:
// the attempt is committed as lost and its step offered again, and whatever still comes in its
// name is refused. Nonces follow from a secret and the attempt, so an engine that starts anew
// knows those of the attempts that it adopts; it gives them whole leases.
//
// # Files
//
//	.bagpipe/remote/secret        of the nonces
//	.bagpipe/remote/probe         found by workers that share the file system
//	.bagpipe/remote/status.json   who is connected, for the commands that tell of it
//	.bagpipe/remote/operator      the key by which the commands reach the engine
//	.bagpipe/remote/lock          held by the one engine that serves workers
//	.bagpipe/nats                 the server's store
//	access/workers.json           the workers' public keys
//	access/workers-ca.pem, .key   the authority that this engine's certificate comes from
package remote
