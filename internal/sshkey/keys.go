package sshkey

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"slices"
)

// Keys sign texts for other machines and check signatures. The zero Keys sign nothing and believe everything.
type Keys struct {
	Trust []ed25519.PublicKey // accept only signatures of these keys; empty: accept everything
	Own   ed25519.PrivateKey  // nil: do not sign
}

// ReadKeys parses public keys with ParsePublic, and reads a private key with ReadPrivate unless path is empty.
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

// NoSignature is the signature of an unsigned text.
const NoSignature = "-"

// Sign returns the signature of a text; without a key, NoSignature.
func (k Keys) Sign(text []byte) string {
	if k.Own == nil {
		return NoSignature
	}
	return base64.RawStdEncoding.EncodeToString(ed25519.Sign(k.Own, text))
}

// Believes reports whether a text with this signature is accepted.
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

// Convinces reports whether a machine with the same Trust accepts signatures of these keys.
func (k Keys) Convinces() bool { return k.Believes(nil, k.Sign(nil)) }
