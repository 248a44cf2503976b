package shared

import (
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"

	"github.com/benchgraph/benchgraph/cache"
)

// ParsePublicKey reads an ed25519 key as ssh-keygen writes it into a file that ends in .pub.
func ParsePublicKey(text string) (ed25519.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, errors.New("it is no public key")
	}
	if k, ok := key.(ssh.CryptoPublicKey); ok {
		if public, ok := k.CryptoPublicKey().(ed25519.PublicKey); ok {
			return public, nil
		}
	}
	return nil, fmt.Errorf("it is a key of type %s", key.Type())
}

// ReadPrivateKey reads the file of an ed25519 key as ssh-keygen writes it, without a passphrase.
func ReadPrivateKey(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	var locked *ssh.PassphraseMissingError
	if errors.As(err, &locked) {
		return nil, errors.New("it has a passphrase: make a key for signing alone, with ssh-keygen -t ed25519 -N ''")
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("it is no ed25519 key: make one with ssh-keygen -t ed25519 -N ''")
	}
	return *key, nil
}

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
