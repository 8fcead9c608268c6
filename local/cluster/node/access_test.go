package node

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// tokenServer is an API server that grants tokens to one account, and the requests that it got.
func tokenServer(t *testing.T, account corev1.ServiceAccount, expiry time.Time) (accessMaker, *[]string) {
	t.Helper()
	var requests []string
	server := httptest.NewTLSServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		answer.Header().Set("Content-Type", "application/json")
		if request.Method == http.MethodGet {
			_ = json.NewEncoder(answer).Encode(account)
			return
		}
		body, _ := io.ReadAll(request.Body)
		requests = append(requests, request.URL.Path+" "+string(body))
		granted := authenticationv1.TokenRequest{
			TypeMeta: metav1.TypeMeta{APIVersion: "authentication.k8s.io/v1", Kind: "TokenRequest"},
			Status:   authenticationv1.TokenRequestStatus{Token: "granted", ExpirationTimestamp: metav1.NewTime(expiry)},
		}
		_ = json.NewEncoder(answer).Encode(granted)
	}))
	t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	config := &rest.Config{
		Host: server.URL, TLSClientConfig: rest.TLSClientConfig{CAData: authority},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return accessMaker{client: client, server: config}, &requests
}

func accountThatMounts(mounts *bool) corev1.ServiceAccount {
	return corev1.ServiceAccount{
		TypeMeta:                     metav1.TypeMeta{APIVersion: "v1", Kind: "ServiceAccount"},
		ObjectMeta:                   metav1.ObjectMeta{Namespace: "default", Name: "operator"},
		AutomountServiceAccountToken: mounts,
	}
}

func podOfAccount(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "pod", UID: "uid"},
		Spec:       corev1.PodSpec{ServiceAccountName: name},
	}
}

func TestAPodGetsItsAccountsTokenAsAKubeconfig(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	maker, requests := tokenServer(t, accountThatMounts(nil), now.Add(time.Hour))
	granted, err := maker.obtain(t.Context(), podOfAccount("operator"), t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	if got := granted.renewAt.Sub(now); got != 48*time.Minute {
		t.Errorf("renewed after %s", got)
	}
	if got := (*requests)[0]; !strings.HasPrefix(got, "/api/v1/namespaces/default/serviceaccounts/operator/token ") ||
		!strings.Contains(got, `"uid":"uid"`) {
		t.Errorf("asked %s", got)
	}
	config, err := clientcmd.BuildConfigFromFlags("", granted.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if config.Host != maker.server.Host || contents(t, config.BearerTokenFile) != "granted" {
		t.Errorf("the kubeconfig leads to %s with the token in %q", config.Host, config.BearerTokenFile)
	}
}

func TestATokenIsNotBoundToAPodThatNamesNoAccount(t *testing.T) {
	maker, requests := tokenServer(t, accountThatMounts(nil), time.Now().Add(time.Hour))
	if _, err := maker.obtain(t.Context(), podOfAccount(""), t.TempDir(), time.Now()); err != nil {
		t.Fatal(err)
	}
	if got := (*requests)[0]; !strings.Contains(got, "/serviceaccounts/default/token") || strings.Contains(got, `"uid"`) {
		t.Errorf("asked %s", got)
	}
}

func TestNobodyGetsATokenUnasked(t *testing.T) {
	no, yes := false, true
	for name, example := range map[string]struct {
		ofPod, ofAccount *bool
		want             bool
	}{
		"neither says a word":              {nil, nil, true},
		"the account declines":             {nil, &no, false},
		"the pod declines":                 {&no, &yes, false},
		"the pod insists over its account": {&yes, &no, true},
	} {
		maker, requests := tokenServer(t, accountThatMounts(example.ofAccount), time.Now().Add(time.Hour))
		pod := podOfAccount("operator")
		pod.Spec.AutomountServiceAccountToken = example.ofPod
		granted, err := maker.obtain(t.Context(), pod, t.TempDir(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := len(*requests) == 1; got != example.want || (granted.kubeconfig != "") != example.want {
			t.Errorf("%s: token granted %t, want %t", name, got, example.want)
		}
	}
}
