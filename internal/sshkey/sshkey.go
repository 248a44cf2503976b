// Package sshkey reads the ed25519 keys of ssh-keygen.
package sshkey

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"os"

	"golang.org/x/crypto/ssh"
)

// ParsePublic parses an ed25519 key in the format of ssh-keygen's .pub files.
func ParsePublic(text string) (ed25519.PublicKey, error) {
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

// ReadPrivate reads an ed25519 key without a passphrase in ssh-keygen's format.
func ReadPrivate(path string) (ed25519.PrivateKey, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	raw, err := ssh.ParseRawPrivateKey(text)
	if _, ok := errors.AsType[*ssh.PassphraseMissingError](err); ok {
		return nil, errors.New("it has a passphrase: make a key for signing alone, with ssh-keygen -t ed25519 -N ''")
	}
	key, ok := raw.(*ed25519.PrivateKey)
	if err != nil || !ok {
		return nil, errors.New("it is no ed25519 key: make one with ssh-keygen -t ed25519 -N ''")
	}
	return *key, nil
}
