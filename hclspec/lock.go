package hclspec

// Lock is what benchgraph.lock.hcl pins. The zero Lock pins nothing.
type Lock struct {
	Repos   map[string]RepoLock            // by repo name
	Images  map[string]ImageLock           // by the name in the file
	Fetches map[string]FetchLock           // by URL
	Fixes   map[string][]LearntFix         // by fix name
	Wheels  map[string]map[string]string   // wheel name → candidate key → the prebuilt URL that served
	Nearest map[string]map[string]NearLock // wheel name → candidate key → the ancestor whose prebuilt wheel that is
	// wheel name → URL of a prebuilt wheel that was fetched and is none of the revision → why
	Refused map[string]map[string]string
}

// NearLock is the ancestor whose wheel serves another commit.
type NearLock struct {
	Commit string // 40 hexadecimal digits
	Back   int    // number of commits back along first parents
}

// RepoLock pins the revisions of one repo.
type RepoLock struct {
	Location  string             // URL or path that the pins came from
	Revs      map[string]RevLock // by the spelling in the file
	Described map[string]string  // commit → what git describe says of it
	// overlay patterns joined by a space → commit → digest of the rest of its tree
	Outside map[string]map[string]string
}

// RevLock is one resolved revision: 40 hexadecimal digits each.
type RevLock struct {
	Commit  string // empty: Unknown says why
	Tree    string
	Unknown string // why the repo has no such revision, for the rest of this process: it is not written
}

// ImageLock is what the name of an image turned out to mean.
type ImageLock struct {
	Digest string // sha256:…, of its manifest in the registry; of its configuration when no registry has it
	Size   int64  // bytes to be downloaded; 0: not known
}

// FetchLock is what a download turned out to be.
type FetchLock struct {
	SHA256 string
	Size   int64
}

// LearntFix is a fix that a failure asked for.
type LearntFix struct {
	Commit   string // name of the commit block
	At       string // block that it is applied to, as kind.name; empty: wherever it may be
	Evidence string // the log line that matched
}
