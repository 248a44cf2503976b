package kubetest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	scheme "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/benchgraph/benchgraph/internal/needtest"
)

// Cluster is a control plane that runs until the test ends.
type Cluster struct {
	Batch, Core rest.Interface // clients of an administrator

	t       testing.TB
	dir     string
	address string // of the API server
	proxy   *proxy // the clients of a test reach the API server through it
	starts  chan func()
	agent   *os.Process // the kubelet; nil: it is simulated

	nodes sync.Mutex // held while the node is made

	mu    sync.Mutex
	names int
	pods  map[string]*played // by NAMESPACE/NAME
	jobs  map[string]int     // last number of Jobs, by namespace
	held  map[string]bool    // namespaces in which Pods get no node
}

const admin = "admin-token"

// program returns the path at which the Makefile builds a part of Kubernetes, in the module of the test.
func (c *Cluster) program(name string) string {
	c.t.Helper()
	dir, err := os.Getwd()
	c.must(err)
	for ; dir != "/"; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			break
		}
	}
	return filepath.Join(dir, "bin", "kubernetes", name)
}

// Start starts etcd and an API server.
func Start(t testing.TB) *Cluster {
	t.Helper()
	if os.Geteuid() != 0 {
		needtest.Missing(t, "the cluster of the test needs root")
	}
	c := &Cluster{t: t, dir: t.TempDir(), starts: make(chan func()), pods: map[string]*played{},
		jobs: map[string]int{}, held: map[string]bool{}}
	program := c.program("kube-apiserver")
	if _, err := os.Stat(program); err != nil {
		// also in CI, which has no time to build it
		t.Skipf("%s is not there: make kubernetes builds it, in minutes", program)
	}
	if _, err := exec.LookPath("etcd"); err != nil {
		needtest.Missing(t, "no etcd (apt-get install etcd-server)")
	}
	go func() {
		runtime.LockOSThread() // never unlocked: the kernel ends the processes with the thread that started them
		for start := range c.starts {
			start()
		}
	}()
	t.Cleanup(func() { close(c.starts) })
	client, peer, secure := port(t), port(t), port(t)
	etcd := "http://127.0.0.1:" + client
	c.run("etcd", "etcd", "--data-dir="+filepath.Join(c.dir, "data"), "--unsafe-no-fsync", "--log-level=error",
		"--logger=zap", "--listen-client-urls="+etcd, "--advertise-client-urls="+etcd,
		"--listen-peer-urls=http://127.0.0.1:"+peer)
	c.credentials()
	c.address = "https://127.0.0.1:" + secure
	serve := []string{program, "--etcd-servers=" + etcd, "--secure-port=" + secure, "--bind-address=127.0.0.1",
		"--cert-dir=" + filepath.Join(c.dir, "certs"), "--token-auth-file=" + c.path("tokens"),
		"--service-account-key-file=" + c.path("key"), "--service-account-signing-key-file=" + c.path("key"),
		"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
		"--authorization-mode=RBAC", "--anonymous-auth=false", "--endpoint-reconciler-type=none", "--allow-privileged",
		"--kubelet-preferred-address-types=InternalIP", "--v=0"}
	if !c.Real() { // without controllers, namespaces have no accounts
		serve = append(serve, "--disable-admission-plugins=ServiceAccount")
	}
	c.connect()
	c.run("kube-apiserver", serve...)
	c.ready()
	c.proxy = c.between(c.address)
	if c.Real() {
		c.join()
	}
	return c
}

func (c *Cluster) path(name string) string { return filepath.Join(c.dir, name) }

// port returns a free port of this machine.
func port(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// credentials writes the key that signs the accounts' tokens, and the tokens of an administrator and of a user
// without rights.
func (c *Cluster) credentials() {
	c.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	c.must(err)
	der, err := x509.MarshalECPrivateKey(key)
	c.must(err)
	c.must(os.WriteFile(c.path("key"), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der}), 0o600))
	c.must(os.WriteFile(c.path("tokens"), []byte(admin+",admin,1,system:masters\nnobody-token,nobody,2\n"), 0o600))
}

func (c *Cluster) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// run starts a process that ends with the test.
func (c *Cluster) run(name string, argv ...string) *os.Process {
	c.t.Helper()
	path := c.path(name + ".log")
	if keep := os.Getenv("BENCHGRAPH_TEST_NODE_LOGS"); keep != "" {
		path = filepath.Join(keep, name+".log")
	}
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	c.must(err)
	defer log.Close()
	cmd, done := exec.Command(argv[0], argv[1:]...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	c.starts <- func() { started <- cmd.Start() }
	c.must(<-started)
	go func() {
		_ = cmd.Wait()
		close(done)
	}()
	c.t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-done
	})
	return cmd.Process
}

// connect makes clients of an administrator.
func (c *Cluster) connect() {
	c.t.Helper()
	known := scheme.NewScheme()
	c.must(batchv1.AddToScheme(known))
	c.must(corev1.AddToScheme(known))
	config := rest.Config{Host: c.address, BearerToken: admin, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{Insecure: true}, WarningHandler: rest.NoWarnings{}}
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	var err error
	config.GroupVersion, config.APIPath = &corev1.SchemeGroupVersion, "/api"
	c.Core, err = rest.RESTClientFor(&config)
	c.must(err)
	batch := rest.CopyConfig(&config)
	batch.GroupVersion, batch.APIPath = &batchv1.SchemeGroupVersion, "/apis"
	c.Batch, err = rest.RESTClientFor(batch)
	c.must(err)
}

// ready waits until the API server is ready.
func (c *Cluster) ready() {
	c.t.Helper()
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if c.Core.Get().AbsPath("/readyz").Do(context.Background()).Error() == nil {
			return
		}
		if time.Since(begun) > 2*time.Minute {
			text, _ := os.ReadFile(c.path("kube-apiserver.log"))
			c.t.Fatalf("the API server is not ready:\n%s", text[max(0, len(text)-4000):])
		}
	}
}

// Namespace makes a namespace.
func (c *Cluster) Namespace() string {
	c.t.Helper()
	c.mu.Lock()
	c.names++
	name := "test-" + strconv.Itoa(c.names)
	c.mu.Unlock()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	c.must(c.Core.Post().Resource("namespaces").Body(ns).Do(context.Background()).Error())
	if c.Real() {
		c.until("the account of a namespace is made", func() bool {
			return c.Core.Get().Namespace(name).Resource("serviceaccounts").Name("default").Do(context.Background()).
				Error() == nil
		})
	}
	return name
}

// Kubeconfig writes a kubeconfig for a user, "admin" or "nobody", and returns its path. Its context "nobody" is always
// for that user.
func (c *Cluster) Kubeconfig(dir, user, namespace string) string {
	c.t.Helper()
	return c.kubeconfig(dir, user, namespace, c.proxy.URL)
}

func (c *Cluster) kubeconfig(dir, user, namespace, server string) string {
	c.t.Helper()
	of := func(user string) map[string]any {
		return map[string]any{"name": user, "user": map[string]any{"token": user + "-token"}}
	}
	as := func(name, user string) map[string]any {
		return map[string]any{"name": name, "context": map[string]any{"cluster": "test", "user": user,
			"namespace": namespace}}
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Config", "current-context": "test",
		"clusters": []any{map[string]any{"name": "test", "cluster": map[string]any{"server": server,
			"insecure-skip-tls-verify": true}}},
		"users": []any{of("admin"), of("nobody")}, "contexts": []any{as("test", user), as("nobody", "nobody")},
	})
	c.must(err)
	path := filepath.Join(dir, "kubeconfig-"+user)
	c.must(os.WriteFile(path, text, 0o600))
	return path
}

// Quota makes a quota in a namespace with the status that the quota controller would write: amounts by name, and the
// used part of them. It returns when the API server applies the quota.
func (c *Cluster) Quota(namespace string, hard, used map[string]string) {
	c.t.Helper()
	status, err := json.Marshal(map[string]any{"hard": hard, "used": used})
	c.must(err)
	spec, err := json.Marshal(map[string]any{"hard": hard})
	c.must(err)
	c.Post(namespace, "resourcequotas", `{"apiVersion":"v1","kind":"ResourceQuota","metadata":{"name":"q"},"spec":`+
		string(spec)+`}`)
	c.must(c.Core.Patch(types.MergePatchType).Namespace(namespace).Resource("resourcequotas").Name("q").
		SubResource("status").Body([]byte(`{"status":` + string(status) + `}`)).Do(context.Background()).Error())
	time.Sleep(2 * time.Second) // until the API server's own watch has delivered the status
}

// Post creates an object in a namespace from JSON, at a path such as pods or pods/NAME/eviction.
func (c *Cluster) Post(namespace, resource, object string) {
	c.t.Helper()
	err := c.Core.Post().AbsPath("/api/v1/namespaces/"+namespace+"/"+resource).
		SetHeader("Content-Type", "application/json").Body([]byte(object)).Do(context.Background()).Error()
	if err != nil {
		c.t.Fatalf("%s: %v", resource, err)
	}
}

// Role gives the user "nobody" verbs in a namespace, by resource such as pods/log; before, the user has none.
func (c *Cluster) Role(namespace string, verbs map[string][]string) {
	c.t.Helper()
	var rules []map[string]any
	for resource, of := range verbs {
		if len(of) == 0 { // which is no rule
			continue
		}
		group := ""
		if resource == "jobs" {
			group = "batch"
		}
		rules = append(rules, map[string]any{"apiGroups": []string{group}, "resources": []string{resource},
			"verbs": of})
	}
	put := func(resource string, object map[string]any) {
		c.t.Helper()
		object["apiVersion"], object["metadata"] = "rbac.authorization.k8s.io/v1", map[string]string{"name": "nobody"}
		body, err := json.Marshal(object)
		c.must(err)
		at := "/apis/rbac.authorization.k8s.io/v1/namespaces/" + namespace + "/" + resource
		ask := c.Core.Put().AbsPath(at, "nobody")
		if c.Core.Get().AbsPath(at, "nobody").Do(context.Background()).Error() != nil {
			ask = c.Core.Post().AbsPath(at)
		}
		c.must(ask.SetHeader("Content-Type", "application/json").Body(body).Do(context.Background()).Error())
	}
	const group = "rbac.authorization.k8s.io"
	put("roles", map[string]any{"kind": "Role", "rules": rules})
	put("rolebindings", map[string]any{"kind": "RoleBinding",
		"roleRef":  map[string]string{"apiGroup": group, "kind": "Role", "name": "nobody"},
		"subjects": []any{map[string]string{"apiGroup": group, "kind": "User", "name": "nobody"}}})
}
