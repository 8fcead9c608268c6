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

// inheritedVariables are what a container gets of the node's own environment, as if its image had them: enough to find
// programs, and the mark by which `fish-local down` knows the processes of its cluster.
var inheritedVariables = []string{"PATH", "HOME", "FISH_LOCAL_STATE"}
