"""Label, annotation and API names that more than one room reads or writes."""

from typing import Final

API_GROUP: Final = "fish-tts.io"
API_VERSION: Final = "v1alpha1"

# Labels on the pods that the operator owns.
WORK_CLASS: Final = f"{API_GROUP}/class"
"""A `WorkClass` value."""
OWNER: Final = f"{API_GROUP}/owner"
"""Name of the TTSDeployment or CleaningJob that the pod belongs to."""
DRAINING: Final = f"{API_GROUP}/draining"
"""Set on an engine pod that takes no new streams."""

GPU_RESOURCE: Final = "nvidia.com/gpu"
GPU_IDS: Final = f"{API_GROUP}/gpu-ids"
"""Annotation that a node writes on a pod: the GPUs it handed out, comma separated."""

SERVING_PRIORITY_CLASS: Final = "fish-serving"
FILL_PRIORITY_CLASS: Final = "fish-fill"

ENGINE_CONTAINER: Final = "engine"
WORKER_CONTAINER: Final = "worker"
