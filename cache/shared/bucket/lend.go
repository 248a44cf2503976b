package bucket

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"
)

// Login has credentials for an S3-compatible server. They expire by themselves.
type Login struct {
	Key     string `json:"key"`
	Secret  string `json:"secret"`
	Session string `json:"session"`
}

// Loan says which rights the Login of another machine gets: to read all objects of the bucket, and to write some.
type Loan struct {
	Role   string        // ARN
	Name   string        // of the session, for the records of the server: letters, digits and =,.@-
	Writes []string      // names of objects
	For    time.Duration // at least 15 minutes
}

// Lender lends credentials, as *S3 does.
type Lender interface {
	Lend(ctx context.Context, l Loan) (Login, error)
}

// Lend asks the server for credentials by STS. The credentials of this machine must be allowed to assume the role.
func (s *S3) Lend(ctx context.Context, l Loan) (Login, error) {
	policy, err := s.policy(l)
	if err != nil {
		return Login{}, err
	}
	within := &credentials.CredContext{Client: &http.Client{Transport: s.transport, Timeout: patience},
		Endpoint: s.endpoint}
	own, err := s.creds.GetWithContext(within)
	if err != nil {
		return Login{}, err
	}
	if own.AccessKeyID == "" {
		return Login{}, ErrDenied
	}
	server := stsOf(s.endpoint, s.region)
	lent, err := credentials.NewSTSAssumeRole(server, credentials.STSAssumeRoleOptions{
		AccessKey: own.AccessKeyID, SecretKey: own.SecretAccessKey, SessionToken: own.SessionToken, Policy: policy,
		Location: s.region, DurationSeconds: int(l.For.Seconds()), RoleARN: l.Role, RoleSessionName: l.Name})
	if err != nil {
		return Login{}, err
	}
	var v credentials.Value
	done := make(chan struct{})
	go func() { // the library takes no context
		defer close(done)
		v, err = lent.GetWithContext(within)
	}()
	select {
	case <-done:
	case <-ctx.Done():
		return Login{}, context.Cause(ctx)
	}
	if err != nil {
		return Login{}, fmt.Errorf("AssumeRole at %s: %w", server, err)
	}
	return Login{v.AccessKeyID, v.SecretAccessKey, v.SessionToken}, nil
}

// stsOf returns the STS server for an endpoint: Amazon's for a region, or the server of the bucket itself.
func stsOf(endpoint, region string) string {
	_, end, ours := strings.Cut(endpoint, ".amazonaws.com")
	switch {
	case !ours:
		return endpoint
	case region == "":
		return "https://sts.amazonaws.com"
	}
	return "https://sts." + region + ".amazonaws.com" + end // .cn, perhaps
}

// statement is a statement of a policy, as Amazon documents it.
type statement struct {
	Effect    string
	Action    []string
	Resource  []string
	Condition map[string]map[string]string `json:",omitempty"`
}

// policy returns the policy of a loan. A server accepts 2048 characters.
func (s *S3) policy(l Loan) (string, error) {
	if strings.ContainsAny(s.bucket+s.prefix, "*?$\\\"") {
		return "", errors.New("the prefix of the store has a sign that stands for others in a policy")
	}
	partition := "aws"
	if parts := strings.Split(l.Role, ":"); len(parts) > 1 && strings.HasPrefix(parts[1], "aws") {
		partition = parts[1] // aws-cn, aws-us-gov
	}
	whole := fmt.Sprintf("arn:%s:s3:::%s", partition, s.bucket)
	below := whole + "/" + s.prefix
	var writes []string
	for _, name := range l.Writes {
		writes = append(writes, below+name)
	}
	text, err := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": []statement{
		{Effect: "Allow", Action: []string{"s3:GetObject"}, Resource: []string{below + "*"}},
		{Effect: "Allow", Action: []string{"s3:ListBucket"}, Resource: []string{whole},
			Condition: map[string]map[string]string{"StringLike": {"s3:prefix": s.prefix + "*"}}},
		{Effect: "Allow", Action: []string{"s3:GetBucketLocation", "s3:ListBucketMultipartUploads"},
			Resource: []string{whole}},
		{Effect: "Allow", Action: []string{"s3:PutObject", "s3:AbortMultipartUpload", "s3:ListMultipartUploadParts"},
			Resource: writes},
	}})
	return string(text), err
}

// given returns the credentials of a login that another machine has lent.
func (l *Login) given() *credentials.Credentials {
	return credentials.NewStaticV4(l.Key, l.Secret, l.Session)
}
