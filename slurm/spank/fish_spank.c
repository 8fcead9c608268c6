/*
 * Optional convenience for people who write cleaning jobs by hand:
 *
 *   sbatch --fish-yield=DIR …   this job yields to training and inference; its checkpoint is DIR
 *   srun   --fish-yield=DIR …   the same for a step
 *
 * It tells the guard (job_submit.lua) through the job's control environment, and the job through FISH_CLASS, FISH_CHECKPOINT
 * and FISH_CHECKPOINT_BUDGET_S. It guards nothing itself: it runs in the user's own sbatch, so a user can do without.
 *
 *   plugstack.conf:   optional /usr/lib/slurm-fish/fish_spank.so budget_s=10
 *
 * `budget_s` is the cluster's KillWait. Call it `optional`, never `required`.
 */
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <slurm/spank.h>

SPANK_PLUGIN(fish_yield, 1)

#define MIN_KILL_WAIT_S 5 /* Slurm treats less as this */
#define MAX_BUDGET_S 3600

static char checkpoint[PATH_MAX]; /* empty: the option was not given */
static char budget_s[16] = "10";

/* Take `budget_s=N` from plugstack.conf. */
static int read_arguments(int argc, char **argv)
{
	for (int i = 0; i < argc; i++) {
		char *end;
		long seconds;

		if (strncmp(argv[i], "budget_s=", 9)) {
			slurm_error("fish: plugstack.conf: argument '%s' unknown, expected budget_s=SECONDS", argv[i]);
			return -1;
		}
		seconds = strtol(argv[i] + 9, &end, 10);
		if (*end || end == argv[i] + 9 || seconds < MIN_KILL_WAIT_S || seconds > MAX_BUDGET_S) {
			slurm_error("fish: plugstack.conf: '%s': expected %d to %d seconds", argv[i], MIN_KILL_WAIT_S,
				    MAX_BUDGET_S);
			return -1;
		}
		snprintf(budget_s, sizeof(budget_s), "%ld", seconds);
	}
	return 0;
}

/* Check and keep the value of --fish-yield. */
static int take_checkpoint(int value, const char *text, int remote)
{
	(void)value;
	(void)remote;
	if (!text || !*text || strlen(text) >= sizeof(checkpoint)) {
		slurm_error("fish: --fish-yield needs the place of the job's checkpoint, of fewer than %zu characters",
			    sizeof(checkpoint));
		return -1;
	}
	for (const char *at = text; *at; at++) {
		if (iscntrl((unsigned char)*at)) {
			slurm_error("fish: --fish-yield: the place of a checkpoint has no control characters");
			return -1;
		}
	}
	strcpy(checkpoint, text);
	return 0;
}

static struct spank_option yield_option = {
	.name = "fish-yield",
	.arginfo = "DIR",
	.usage = "yield GPUs to training and inference; the job resumes from its checkpoint in DIR",
	.has_arg = 1,
	.val = 0,
	.cb = take_checkpoint,
};

/* Tell the guard, which reads the control environment, and the job, which inherits this process's. */
static int tell(spank_t spank, const char *name, const char *value)
{
	if (spank_job_control_setenv(spank, name, value, 1) != ESPANK_SUCCESS || setenv(name, value, 1)) {
		slurm_error("fish: cannot set %s", name);
		return -1;
	}
	return 0;
}

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	if (spank_context() == S_CTX_SLURMD || spank_context() == S_CTX_JOB_SCRIPT)
		return ESPANK_SUCCESS; /* the node's daemon and its prolog have no options */
	if (read_arguments(argc, argv))
		return ESPANK_ERROR;
	return spank_option_register(spank, &yield_option);
}

int slurm_spank_init_post_opt(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	if (!*checkpoint || spank_remote(spank) == 1)
		return ESPANK_SUCCESS;
	if (tell(spank, "FISH_CLASS", "cleaning") || tell(spank, "FISH_CHECKPOINT", checkpoint) ||
	    tell(spank, "FISH_CHECKPOINT_BUDGET_S", budget_s))
		return ESPANK_ERROR;
	return ESPANK_SUCCESS;
}
