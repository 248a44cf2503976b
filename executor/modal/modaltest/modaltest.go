// Package modaltest is a stand-in for Modal in tests. It speaks the protocol of Modal's client library, and runs the
// commands of sandboxes as processes of this machine, each with the environment that it was given, and no other.
// Whatever the library does not use is not there. GPUs are counted and not real.
package modaltest

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	pb "github.com/modal-labs/modal-client/go/proto/modal_proto"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// The token that the server takes.
const (
	TokenID     = "ak-test"
	TokenSecret = "as-test"
)

// Server is a Modal with one account and one environment.
type Server struct {
	pb.UnimplementedModalClientServer
	url string
	dir string // of the sandboxes and volumes

	mu        sync.Mutex
	last      int               // number of an object
	objects   map[string]string // IDs of apps, secrets, volumes and images by kind and name
	secrets   map[string]map[string]string
	images    map[string]string // Dockerfiles by ID
	logins    map[string]string // of the registries of images, by ID
	sandboxes []*Sandbox
	answers   map[string]any // by key of idempotency
	faults    map[string][]Fault
	calls     map[string]int
	capacity  int                                // GPUs; -1: as many as are asked for
	held      bool                               // no sandbox starts
	silent    bool                               // nobody gets an answer
	environ   func(id string, gpus int) []string // of a machine; nil: nothing more
}

// Fault is what becomes of the next call of a method.
type Fault struct {
	Code  codes.Code
	After bool          // the call is carried out, and its answer is lost
	Retry time.Duration // after which the server asks to try again; 0: it does not
}

// Start starts a server, which ends with the test, and all its sandboxes with it.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New(t.TempDir())
	t.Cleanup(s.Serve(func(err error) { t.Error(err) }))
	return s
}

// New makes a server that keeps its files in a directory.
func New(dir string) *Server {
	return &Server{dir: dir, objects: map[string]string{}, secrets: map[string]map[string]string{},
		images: map[string]string{}, logins: map[string]string{}, answers: map[string]any{},
		faults: map[string][]Fault{}, calls: map[string]int{}, capacity: -1}
}

// Serve listens on this machine. What it returns ends the server.
func (s *Server) Serve(failed func(error)) (end func()) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		failed(err)
		return func() {}
	}
	s.url = "http://" + l.Addr().String()
	g := grpc.NewServer(grpc.UnaryInterceptor(s.unary), grpc.StreamInterceptor(s.stream))
	pb.RegisterModalClientServer(g, s)
	go func() { _ = g.Serve(l) }()
	return func() {
		g.Stop()
		for _, sb := range s.Sandboxes() {
			sb.end(pb.GenericResult_GENERIC_STATUS_TERMINATED, "")
			<-sb.over
		}
	}
}

// Environ are the variables with which the library finds the server, and its token.
func (s *Server) Environ() []string {
	return []string{"MODAL_SERVER_URL=" + s.url, "MODAL_TOKEN_ID=" + TokenID, "MODAL_TOKEN_SECRET=" + TokenSecret,
		"MODAL_CONFIG_PATH=" + filepath.Join(s.dir, "modal.toml")}
}

// Capacity bounds the GPUs of all sandboxes together; -1: nothing does. Sandboxes beyond are queued.
func (s *Server) Capacity(gpus int) {
	s.mu.Lock()
	s.capacity = gpus
	s.mu.Unlock()
	s.schedule()
}

// Hold says whether all sandboxes that are queued stay so.
func (s *Server) Hold(held bool) {
	s.mu.Lock()
	s.held = held
	s.mu.Unlock()
	s.schedule()
}

// Silence says whether nobody gets an answer, also to what was asked before.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// silence returns the error that a caller has in the place of an answer while the server is silent.
func (s *Server) silence() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return status.Error(codes.Unavailable, "played: silence")
	}
	return nil
}

// Machine says which variables a sandbox has of its image and its machine, by its ID and its number of GPUs.
func (s *Server) Machine(environ func(id string, gpus int) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.environ = environ
}

// Secret makes a secret.
func (s *Server) Secret(name string, values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[s.object("secret", name, "st")] = values
}

// Volume makes a volume, and returns its directory.
func (s *Server) Volume(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, s.object("volume", name, "vo"))
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// Fail has the next calls of a method, such as SandboxCreate, fail.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Calls is how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Sandboxes are all that were made, the first first.
func (s *Server) Sandboxes() []*Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sandboxes)
}

// Seen is all that the server knows but the values of secrets, as text: what others with the account can read.
func (s *Server) Seen() string {
	var text strings.Builder
	for _, sb := range s.Sandboxes() {
		fmt.Fprintln(&text, sb.definition, sb.Tags, sb.Output())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(&text, s.images, s.objects)
	return text.String()
}

// object is the ID of an object of a name, which is made if there is none.
func (s *Server) object(kind, name, prefix string) string {
	id, ok := s.objects[kind+"/"+name]
	if !ok || name == "" {
		s.last++
		id = fmt.Sprintf("%s-%022d", prefix, s.last)
		s.objects[kind+"/"+name] = id
	}
	return id
}

func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	method := info.FullMethod[strings.LastIndex(info.FullMethod, "/")+1:]
	md, _ := metadata.FromIncomingContext(ctx)
	if err := cmp.Or(s.silence(), s.admit(method, md)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.calls[method]++
	var fault *Fault
	if left := s.faults[method]; len(left) > 0 {
		fault, s.faults[method] = &left[0], left[1:]
	}
	key := strings.Join(md.Get("x-idempotency-key"), "")
	known := s.answers[method+key]
	s.mu.Unlock()
	if fault != nil && !fault.After {
		return nil, fault.err()
	}
	var err error
	if known == nil {
		if known, err = next(ctx, req); err != nil {
			return nil, err
		}
		s.mu.Lock()
		s.answers[method+key] = known
		s.mu.Unlock()
	}
	if fault != nil {
		return nil, fault.err()
	}
	if err := s.silence(); err != nil {
		return nil, err
	}
	return known, nil
}

func (f *Fault) err() error {
	st := status.New(f.Code, "played: "+f.Code.String())
	if f.Retry > 0 {
		policy := pb.RPCRetryPolicy_builder{RetryAfterSecs: float32(f.Retry.Seconds())}.Build()
		if with, err := st.WithDetails(policy); err == nil {
			st = with
		}
	}
	return st.Err()
}

func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	md, _ := metadata.FromIncomingContext(ss.Context())
	if err := cmp.Or(s.silence(), s.admit("", md)); err != nil {
		return err
	}
	return next(srv, ss)
}

// admit checks who calls. All but the first call have a token that the server gave; streams have none.
func (s *Server) admit(method string, md metadata.MD) error {
	has := func(key, value string) bool { // the library sends some twice
		all := md.Get(key)
		return len(all) > 0 && all[0] == value
	}
	if !has("x-modal-token-id", TokenID) || !has("x-modal-token-secret", TokenSecret) {
		return status.Error(codes.Unauthenticated, "Token ID and secret are not valid.")
	}
	if method != "" && method != "AuthTokenGet" && !has("x-modal-auth-token", authToken()) {
		return status.Error(codes.Unauthenticated, "There is no auth token.")
	}
	return nil
}

// authToken is a token with an end, of which the library reads nothing else.
func authToken() string {
	part := func(v any) string {
		text, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(text)
	}
	return part(map[string]any{"alg": "none"}) + "." + part(map[string]any{"exp": 4102444800}) + ".none"
}

// AuthTokenGet gives a token for the session.
func (s *Server) AuthTokenGet(context.Context, *pb.AuthTokenGetRequest) (*pb.AuthTokenGetResponse, error) {
	return pb.AuthTokenGetResponse_builder{Token: authToken()}.Build(), nil
}

// EnvironmentGetOrCreate knows one environment.
func (s *Server) EnvironmentGetOrCreate(_ context.Context, r *pb.EnvironmentGetOrCreateRequest) (
	*pb.EnvironmentGetOrCreateResponse, error) {
	return pb.EnvironmentGetOrCreateResponse_builder{EnvironmentId: "en-1",
		Metadata: pb.EnvironmentMetadata_builder{Name: r.GetDeploymentName(),
			Settings: pb.EnvironmentSettings_builder{ImageBuilderVersion: "2025.06"}.Build()}.Build()}.Build(), nil
}

// AppGetOrCreate makes apps.
func (s *Server) AppGetOrCreate(_ context.Context, r *pb.AppGetOrCreateRequest) (*pb.AppGetOrCreateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pb.AppGetOrCreateResponse_builder{AppId: s.object("app", r.GetAppName(), "ap")}.Build(), nil
}

// SecretGetOrCreate finds secrets that Secret has made, and makes ephemeral ones.
func (s *Server) SecretGetOrCreate(_ context.Context, r *pb.SecretGetOrCreateRequest) (*pb.SecretGetOrCreateResponse,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.objects["secret/"+r.GetDeploymentName()]
	if r.GetObjectCreationType() == pb.ObjectCreationType_OBJECT_CREATION_TYPE_EPHEMERAL {
		id = s.object("secret", "", "st")
		s.secrets[id] = maps.Clone(r.GetEnvDict())
	}
	if id == "" {
		return nil, status.Errorf(codes.NotFound, "Secret '%s' not found", r.GetDeploymentName())
	}
	return pb.SecretGetOrCreateResponse_builder{SecretId: id}.Build(), nil
}

// VolumeGetOrCreate finds volumes that Volume has made.
func (s *Server) VolumeGetOrCreate(_ context.Context, r *pb.VolumeGetOrCreateRequest) (*pb.VolumeGetOrCreateResponse,
	error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.objects["volume/"+r.GetDeploymentName()]
	if id == "" {
		return nil, status.Errorf(codes.NotFound, "Volume '%s' not found", r.GetDeploymentName())
	}
	return pb.VolumeGetOrCreateResponse_builder{VolumeId: id}.Build(), nil
}

// ImageGetOrCreate has an image at once, unless its name has "missing" in it.
func (s *Server) ImageGetOrCreate(_ context.Context, r *pb.ImageGetOrCreateRequest) (*pb.ImageGetOrCreateResponse,
	error) {
	file := strings.Join(r.GetImage().GetDockerfileCommands(), "\n")
	result := pb.GenericResult_builder{Status: pb.GenericResult_GENERIC_STATUS_SUCCESS}
	if strings.Contains(file, "missing") {
		result.Status, result.Exception = pb.GenericResult_GENERIC_STATUS_FAILURE, "manifest unknown"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := s.object("image", file, "im")
	s.images[id], s.logins[id] = file, r.GetImage().GetImageRegistryConfig().GetSecretId()
	return pb.ImageGetOrCreateResponse_builder{ImageId: id, Result: result.Build()}.Build(), nil
}
