package sshkey

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
)

// Keys sign what other machines are to believe, and tell what is believed here. The zero Keys sign nothing and believe
// everything.
type Keys struct {
	Trust []ed25519.PublicKey // only what one of them signed is believed; empty: everything is
	Own   ed25519.PrivateKey  // nil: nothing is signed
}

// ReadKeys reads public keys as ParsePublic does, and a private one as ReadPrivate does; none where path is empty.
func ReadKeys(trust []string, path string) (k Keys, err error) {
	for _, text := range trust {
		key, err := ParsePublic(text)
		if err != nil {
			return k, fmt.Errorf("trust: %w", err)
		}
		k.Trust = append(k.Trust, key)
	}
	if path != "" {
		k.Own, err = ReadPrivate(path)
	}
	return k, err
}

// NoSignature stands for a signature where there is none.
const NoSignature = "-"

// Sign returns the signature of a text; NoSignature without a key.
func (k Keys) Sign(text []byte) string {
	if k.Own == nil {
		return NoSignature
	}
	return base64.RawStdEncoding.EncodeToString(ed25519.Sign(k.Own, text))
}

// Believes reports whether a text with a signature may be believed.
func (k Keys) Believes(text []byte, signature string) bool {
	if len(k.Trust) == 0 {
		return true
	}
	raw, err := base64.RawStdEncoding.DecodeString(signature)
	if err != nil || len(raw) != ed25519.SignatureSize {
		return false
	}
	return slices.ContainsFunc(k.Trust, func(key ed25519.PublicKey) bool { return ed25519.Verify(key, text, raw) })
}

// Convinces reports whether whoever has the same Trust believes what these keys sign.
func (k Keys) Convinces() bool { return k.Believes(nil, k.Sign(nil)) }
