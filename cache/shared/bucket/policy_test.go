package bucket

import (
	"strings"
	"testing"
)

// Credentials come from Amazon's server for the region, or from the one that has the bucket.
func TestLenders(t *testing.T) {
	for place, want := range map[[2]string]string{
		{amazon, ""}:             "https://sts.amazonaws.com",
		{amazon, "eu-central-1"}: "https://sts.eu-central-1.amazonaws.com",
		{"https://s3.cn-north-1.amazonaws.com.cn", "cn-north-1"}: "https://sts.cn-north-1.amazonaws.com.cn",
		{"https://minio.example.org:9000", "us-east-1"}:          "https://minio.example.org:9000",
	} {
		if got := stsOf(place[0], place[1]); got != want {
			t.Errorf("%v: %s", place, got)
		}
	}
}

// A policy names the partition of the role, and is short enough for servers. Characters that are wildcards in a policy
// are refused.
func TestPolicy(t *testing.T) {
	s := &S3{bucket: "team", prefix: "results/"}
	loan := Loan{Role: "arn:aws-cn:iam::123456789012:role/jobs", Writes: []string{
		"entries/00/" + strings.Repeat("0", 64), "jobs/00000000/" + strings.Repeat("0", 64) + ".json"}}
	text, err := s.policy(loan)
	if err != nil || len(text) > 2048 || !strings.Contains(text, `"arn:aws-cn:s3:::team/results/jobs/00000000/00`) {
		t.Errorf("%d bytes, %v: %s", len(text), err, text)
	}
	loan.Role = "arn:minio:iam:::role/jobs"
	if text, err := s.policy(loan); err != nil || !strings.Contains(text, `"arn:aws:s3:::team/results/*"`) {
		t.Errorf("%v: %s", err, text)
	}
	for _, prefix := range []string{"a*/", "a?/", "${x}/"} {
		if _, err := (&S3{bucket: "team", prefix: prefix}).policy(loan); err == nil {
			t.Errorf("%s is not refused", prefix)
		}
	}
}
