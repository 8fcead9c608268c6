package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api/v1"
)

// tokenLifetime is the kubelet's default. A token is asked for again when a fifth of it is left, as the kubelet does.
const tokenLifetime = time.Hour

// accessMaker gives a pod's processes the API access of its ServiceAccount.
type accessMaker struct {
	client kubernetes.Interface
	server *rest.Config
}

// access is a pod's token and the kubeconfig that holds it. Its zero value means that the pod wants none.
type access struct {
	token      string
	kubeconfig string
	renewAt    time.Time
}

// obtain asks for a token, bound to the pod where it can be, and writes the kubeconfig into the pod's directory, over an earlier one.
func (m accessMaker) obtain(ctx context.Context, pod *corev1.Pod, podDir string, now time.Time) (access, error) {
	wanted, err := m.wantsToken(ctx, pod)
	if err != nil || !wanted {
		return access{}, err
	}
	lifetimeSeconds := int64(tokenLifetime / time.Second)
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &lifetimeSeconds}}
	if pod.Spec.ServiceAccountName != "" {
		// A token can be bound only to a pod that names its account, and nobody adds `default` to it when the API server
		// runs without the ServiceAccount admission plug-in.
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{
			APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID,
		}
	}
	account := serviceAccountName(pod)
	answer, err := m.client.CoreV1().ServiceAccounts(pod.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return access{}, fmt.Errorf("request a token of ServiceAccount %s/%s: %w", pod.Namespace, account, err)
	}
	lifetime := answer.Status.ExpirationTimestamp.Sub(now)
	granted := access{
		token:      answer.Status.Token,
		kubeconfig: filepath.Join(podDir, "kubeconfig"),
		renewAt:    now.Add(lifetime * 4 / 5),
	}
	return granted, m.write(granted, pod.Namespace, podDir)
}

// wantsToken follows automountServiceAccountToken: the pod's word counts before the ServiceAccount's.
func (m accessMaker) wantsToken(ctx context.Context, pod *corev1.Pod) (bool, error) {
	if pod.Spec.AutomountServiceAccountToken != nil {
		return *pod.Spec.AutomountServiceAccountToken, nil
	}
	account, err := m.client.CoreV1().ServiceAccounts(pod.Namespace).Get(ctx, serviceAccountName(pod), metav1.GetOptions{})
	if apierrors.IsNotFound(err) && pod.Spec.ServiceAccountName == "" {
		// Nobody asked for an account, and the controller that makes `default` ones has not come to this namespace.
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("read the pod's ServiceAccount: %w", err)
	}
	return account.AutomountServiceAccountToken == nil || *account.AutomountServiceAccountToken, nil
}

// write keeps the token twice: clients that can read a token file follow its renewal, others take the one inside.
func (m accessMaker) write(granted access, namespace, podDir string) error {
	tokenFile := filepath.Join(podDir, "token")
	if err := writeFileAtomically(tokenFile, []byte(granted.token), 0o600); err != nil {
		return err
	}
	authority, err := m.certificateAuthority()
	if err != nil {
		return err
	}
	config := clientcmdapi.Config{
		APIVersion: "v1",
		Kind:       "Config",
		Clusters: []clientcmdapi.NamedCluster{{Name: "local", Cluster: clientcmdapi.Cluster{
			Server: m.server.Host, CertificateAuthorityData: authority, InsecureSkipTLSVerify: m.server.Insecure,
		}}},
		AuthInfos: []clientcmdapi.NamedAuthInfo{{Name: "pod", AuthInfo: clientcmdapi.AuthInfo{
			Token: granted.token, TokenFile: tokenFile,
		}}},
		Contexts: []clientcmdapi.NamedContext{{Name: "pod", Context: clientcmdapi.Context{
			Cluster: "local", AuthInfo: "pod", Namespace: namespace,
		}}},
		CurrentContext: "pod",
	}
	text, err := json.Marshal(config)
	if err != nil {
		return fmt.Errorf("encode the pod's kubeconfig: %w", err)
	}
	// JSON is YAML.
	return writeFileAtomically(granted.kubeconfig, text, 0o600)
}

func (m accessMaker) certificateAuthority() ([]byte, error) {
	if len(m.server.CAData) > 0 || m.server.CAFile == "" {
		return m.server.CAData, nil
	}
	text, err := os.ReadFile(m.server.CAFile)
	if err != nil {
		return nil, fmt.Errorf("read the certificate authority of the API server: %w", err)
	}
	return text, nil
}
