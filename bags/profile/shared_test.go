package profile

import (
	"encoding/json"
	"testing"
)

const profileID = "https://example.org/profile-v1.json"

// aProfile is a profile that goodBag, with its identifier, satisfies.
func aProfile() map[string]any {
	return map[string]any{
		"BagIt-Profile-Info": map[string]any{
			"BagIt-Profile-Identifier": profileID, "BagIt-Profile-Version": "1.4.0", "Source-Organization": "Archive",
			"External-Description": "For tests", "Version": "1.0",
		},
		"Bag-Info":           map[string]any{"Source-Organization": map[string]any{"required": true, "values": []string{"Archive", "Library"}}},
		"Manifests-Required": []string{"sha512"}, "Manifests-Allowed": []string{"sha256", "sha512"},
		"Tag-Manifests-Required": []string{"sha512"}, "Tag-Manifests-Allowed": []string{"sha512"},
		"Tag-Files-Required": []string{"notes/tag.txt"}, "Tag-Files-Allowed": []string{"notes/*"},
		"Payload-Files-Required": []string{"data/a.txt", "data/d/"}, "Payload-Files-Allowed": []string{"data/*"},
		"Allow-Fetch.txt": false, "Serialization": "optional", "Accept-Serialization": []string{"application/zip"},
		"Accept-BagIt-Version": []string{"1.0"},
	}
}

func parsed(t testing.TB, p map[string]any) *Profile {
	t.Helper()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
