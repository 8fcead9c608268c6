package node

// Names that the rest of the project reads or writes; contracts/fish_contracts/labels.py has the same list.
const (
	gpuResource      = "nvidia.com/gpu"
	gpuIDsAnnotation = "fish-tts.io/gpu-ids"
	workClassLabel   = "fish-tts.io/class"
)

// Environment that the node adds to every container.
const (
	kubeconfigVariable     = "KUBECONFIG"
	terminationLogVariable = "TERMINATION_LOG"
	cudaDevicesVariable    = "CUDA_VISIBLE_DEVICES"
	nvidiaDevicesVariable  = "NVIDIA_VISIBLE_DEVICES"
)

// hostAddress is what pods see as status.hostIP, and where the API server finds the node's log server.
const hostAddress = "127.0.0.1"
