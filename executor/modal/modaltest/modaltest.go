// Package modaltest is a stand-in for Modal in tests. It implements the part of Modal's protocol that the client
// library uses, and runs the commands of sandboxes as processes of this machine, each with only its own environment.
// GPUs are counted, not real.
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

// The token that the server accepts.
const (
	TokenID     = "ak-test"
	TokenSecret = "as-test"
)

// Server is a stand-in for Modal with one account and one environment.
type Server struct {
	pb.UnimplementedModalClientServer
	url string
	dir string // files of the sandboxes and volumes

	mu        sync.Mutex
	last      int               // number of the last object
	objects   map[string]string // IDs of apps, secrets, volumes and images by kind and name
	secrets   map[string]map[string]string
	images    map[string]string // Dockerfiles by ID
	logins    map[string]string // ID of the secret with the registry login, by image ID
	sandboxes []*Sandbox
	answers   map[string]any // by method and idempotency key
	faults    map[string][]Fault
	calls     map[string]int
	capacity  int                                // GPUs; -1: no limit
	held      bool                               // no sandbox starts
	silent    bool                               // no call gets an answer
	environ   func(id string, gpus int) []string // additional variables of a sandbox; nil: none
}

// Fault is the result of the next call of a method.
type Fault struct {
	Code  codes.Code
	After bool          // the call has its effect, but its answer is lost
	Retry time.Duration // delay after which the client should retry; 0: the server gives none
}

// Start starts a server. The server and all its sandboxes end with the test.
func Start(t testing.TB) *Server {
	t.Helper()
	s := New(t.TempDir())
	t.Cleanup(s.Serve(func(err error) { t.Error(err) }))
	return s
}

// New returns a server that keeps its files in dir.
func New(dir string) *Server {
	return &Server{dir: dir, objects: map[string]string{}, secrets: map[string]map[string]string{},
		images: map[string]string{}, logins: map[string]string{}, answers: map[string]any{},
		faults: map[string][]Fault{}, calls: map[string]int{}, capacity: -1}
}

// Serve listens on this machine. The returned function stops the server.
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

// Environ returns the variables by which the library finds the server and its token.
func (s *Server) Environ() []string {
	return []string{"MODAL_SERVER_URL=" + s.url, "MODAL_TOKEN_ID=" + TokenID, "MODAL_TOKEN_SECRET=" + TokenSecret,
		"MODAL_CONFIG_PATH=" + filepath.Join(s.dir, "modal.toml")}
}

// Capacity limits the GPUs of all sandboxes together; -1: no limit. Sandboxes beyond the limit are queued.
func (s *Server) Capacity(gpus int) {
	s.mu.Lock()
	s.capacity = gpus
	s.mu.Unlock()
	s.schedule()
}

// Hold sets whether queued sandboxes stay queued.
func (s *Server) Hold(held bool) {
	s.mu.Lock()
	s.held = held
	s.mu.Unlock()
	s.schedule()
}

// Silence sets whether no call gets an answer, including calls that have already begun.
func (s *Server) Silence(silent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.silent = silent
}

// silence returns the error that replaces all answers while the server is silent.
func (s *Server) silence() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.silent {
		return status.Error(codes.Unavailable, "played: silence")
	}
	return nil
}

// Machine sets the function that returns a sandbox's variables from its image and machine, by its ID and number of
// GPUs.
func (s *Server) Machine(environ func(id string, gpus int) []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.environ = environ
}

// Secret creates a secret.
func (s *Server) Secret(name string, values map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.secrets[s.object("secret", name, "st")] = values
}

// Volume creates a volume and returns its directory.
func (s *Server) Volume(name string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	dir := filepath.Join(s.dir, s.object("volume", name, "vo"))
	_ = os.MkdirAll(dir, 0o755)
	return dir
}

// Fail makes the next calls of a method, such as SandboxCreate, fail.
func (s *Server) Fail(method string, faults ...Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[method] = append(s.faults[method], faults...)
}

// Calls returns how often a method was called.
func (s *Server) Calls(method string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[method]
}

// Sandboxes returns all sandboxes in the order of their creation.
func (s *Server) Sandboxes() []*Sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.sandboxes)
}

// Seen returns as text everything that the server knows except the values of secrets: others with the account can
// read it.
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

// object returns the ID of the object with a name; it creates the object if there is none.
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

// admit checks the caller's credentials. All calls but the first have a token that the server gave out; streams have
// none.
func (s *Server) admit(method string, md metadata.MD) error {
	has := func(key, value string) bool { // the library sends some values twice
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

// authToken returns a token; the library reads only its expiry.
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

// EnvironmentGetOrCreate returns the only environment.
func (s *Server) EnvironmentGetOrCreate(_ context.Context, r *pb.EnvironmentGetOrCreateRequest) (
	*pb.EnvironmentGetOrCreateResponse, error) {
	return pb.EnvironmentGetOrCreateResponse_builder{EnvironmentId: "en-1",
		Metadata: pb.EnvironmentMetadata_builder{Name: r.GetDeploymentName(),
			Settings: pb.EnvironmentSettings_builder{ImageBuilderVersion: "2025.06"}.Build()}.Build()}.Build(), nil
}

// AppGetOrCreate creates apps.
func (s *Server) AppGetOrCreate(_ context.Context, r *pb.AppGetOrCreateRequest) (*pb.AppGetOrCreateResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return pb.AppGetOrCreateResponse_builder{AppId: s.object("app", r.GetAppName(), "ap")}.Build(), nil
}

// SecretGetOrCreate finds secrets of Server.Secret, and creates ephemeral ones.
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

// VolumeGetOrCreate finds volumes of Server.Volume.
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

// ImageGetOrCreate returns an image at once, unless its name contains "missing".
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
