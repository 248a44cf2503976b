package job

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
)

// Encrypt encrypts the request of a job that waits in a file until the job starts. The job alone gets the encryption
// key, in RequestKeyVariable: commands of other jobs of the user can read the file.
func Encrypt(request []byte) (encrypted []byte, key string) {
	random := make([]byte, 32)
	_, _ = rand.Read(random) // never fails
	box, _ := aead(random)   // no error with this length
	return box.Seal(nil, nil, request, nil), base64.RawStdEncoding.EncodeToString(random)
}

// Decrypt returns the request that Encrypt has encrypted.
func Decrypt(encrypted []byte, key string) (request []byte, err error) {
	decoded, err := base64.RawStdEncoding.DecodeString(key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RequestKeyVariable, err)
	}
	box, err := aead(decoded)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", RequestKeyVariable, err)
	}
	if request, err = box.Open(nil, nil, encrypted, nil); err != nil {
		return nil, errors.New("the file is not as it was when the job was submitted")
	}
	return request, nil
}

func aead(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
