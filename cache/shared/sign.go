package shared

import (
	"crypto/ed25519"
	"encoding/base64"

	"github.com/benchgraph/benchgraph/cache"
)

// signed is what a signature is over.
func signed(m *cache.Meta) []byte { return []byte(magic + "\n" + statement(m)) }

// sign returns the signature of an entry.
func sign(key ed25519.PrivateKey, m *cache.Meta) string {
	if key == nil {
		return noSignature
	}
	return base64.RawStdEncoding.EncodeToString(ed25519.Sign(key, signed(m)))
}

// signedBy reports whether one of the keys signed a record.
func (r *record) signedBy(keys []ed25519.PublicKey) bool {
	signature, err := base64.RawStdEncoding.DecodeString(r.signature)
	if err != nil || len(signature) != ed25519.SignatureSize {
		return false
	}
	text := signed(&r.Meta)
	for _, key := range keys {
		if ed25519.Verify(key, text, signature) {
			return true
		}
	}
	return false
}
