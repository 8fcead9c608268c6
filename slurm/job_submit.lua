--[[ The guard: every sbatch, srun, salloc and scontrol update of the cluster passes here.

It stamps the class of work, and refuses cleaning that would not survive being preempted. It runs inside slurmctld under
its locks: no files, no network, no processes, only text. Lua 5.1. Put it beside slurm.conf; slurmctld reads a changed
file at the next job, and keeps the old one when the new one does not parse.

Slurm lets a job through unchecked when Lua raises an error, so everything runs under pcall: an error in here refuses
cleaning and lets training pass.
]]

-- Equal to fish_contracts.priority.MAY_PREEMPT (claimant, then holder); a test compares.
local MAY_PREEMPT = {
   inference = { cleaning = true },
   training = { cleaning = true },
}
local PARTITION_OF = { inference = "serve", training = "train", cleaning = "clean" }
local QOS_OF = PARTITION_OF -- the QOS have the partitions' names
local USE_QOS = false -- true together with fish-qos.conf

local function refuse(format, ...)
   slurm.log_user("fish: " .. format, ...)
   return slurm.ERROR
end

local function yields(class)
   for _, holders in pairs(MAY_PREEMPT) do
      if holders[class] then return true end
   end
   return false
end

local function environment_value(job, name)
   return job.environment and job.environment[name]
end

-- What the SPANK plugin passes on with spank_job_control_setenv().
local function spank_value(job, name)
   for _, pair in pairs(job.spank_job_env or {}) do
      local value = string.match(pair, "^" .. name .. "=(.*)$")
      if value then return value end
   end
end

local function said(job, name)
   return spank_value(job, name) or environment_value(job, name)
end

local function lists(partitions, wanted)
   for name in string.gmatch(partitions or "", "[^,]+") do
      if name == wanted then return true end
   end
   return false
end

-- A job's class: what it says, else what its partition means, else training. The second value is the reason if neither fits.
local function class_of(job)
   local class = said(job, "FISH_CLASS")
   if class then
      if not PARTITION_OF[class] then return nil, "class " .. class .. " unknown: inference, training or cleaning" end
      return class
   end
   for candidate, partition in pairs(PARTITION_OF) do
      if job.partition == partition then return candidate end
      if yields(candidate) and lists(job.partition, partition) then
         return nil, "partition " .. job.partition .. ": work in " .. partition .. " is preempted, so name one partition only"
      end
   end
   return "training"
end

-- Where a script says that its work can be taken up again; quoted as shells quote.
local function checkpoint_in(script)
   local value = string.match(script, "FISH_CHECKPOINT='([^'\n]*)'") or string.match(script, 'FISH_CHECKPOINT="([^"\n]*)"')
      or string.match(script, "FISH_CHECKPOINT=([^%s'\"]+)")
   return value and string.gsub(value, "[%c;]", "_")
end

-- Commands of a shell script: no comments, no blanks, continued lines joined.
local function commands_of(script)
   local commands = {}
   local joined = string.gsub(script, "\\\n%s*", " ")
   for line in string.gmatch(joined, "[^\n]+") do
      local command = string.match(line, "^%s*(.-)%s*$")
      if command ~= "" and string.sub(command, 1, 1) ~= "#" then commands[#commands + 1] = command end
   end
   return commands
end

local function catches_term(commands)
   local traps, waits = false, false
   for _, command in ipairs(commands) do
      if string.match(command, "^trap%s") and string.match(command, "TERM") then traps = true end
      if string.match(command, "^wait%f[%W]") then waits = true end
   end
   return traps and waits
end

-- Why preemption would lose this script's work, or nil. A child that bash waits for is never told of SIGTERM under
-- proctrack/cgroup, and under linuxproc it outlives bash and still holds the GPU when training starts.
local function why_unsafe(script)
   local interpreter = string.match(script, "^#!%s*([^\n]*)") or ""
   if interpreter ~= "" and not string.match(interpreter, "sh%f[%W]") then return nil end -- the worker itself
   local commands = commands_of(script)
   local last = commands[#commands]
   if last == nil then return "the script runs nothing" end
   local unquoted = string.gsub(string.gsub(last, "'[^']*'", "Q"), '"[^"]*"', "Q")
   local tail = string.match(unquoted, "^.*;%s*(.-)$") or unquoted
   tail = string.match(tail, "^.*&&%s*(.-)$") or tail
   if string.match(tail, "^exec%s+[^|&;]+$") or catches_term(commands) then return nil end
   return "'" .. string.sub(last, 1, 60) .. "' would run as a child of the shell, which is not told of preemption, so its"
      .. " checkpoint would be lost: end the script with 'exec COMMAND', or let 'fish-slurm submit' write it"
end

local function guard_yielding(job, class)
   local partition = PARTITION_OF[class]
   if job.script == nil then
      return refuse("%s must be an sbatch job: srun and salloc cannot be requeued", class)
   end
   if job.requeue == 0 then
      return refuse("--no-requeue is not allowed for %s: preemption would lose the job", class)
   end
   if job.partition ~= nil and job.partition ~= partition then
      return refuse("%s runs in partition %s only, not in %s", class, partition, job.partition)
   end
   local checkpoint = said(job, "FISH_CHECKPOINT") or checkpoint_in(job.script)
   if checkpoint == nil or checkpoint == "" then
      return refuse("%s needs FISH_CHECKPOINT=PLACE: it is preempted at any moment and must resume from somewhere", class)
   end
   local reason = why_unsafe(job.script)
   if reason then return refuse("%s", reason) end
   job.requeue = 1
   job.admin_comment = "fish:class=" .. class .. ";checkpoint=" .. checkpoint
   return slurm.SUCCESS
end

local function guard_submit(job)
   local class, reason = class_of(job)
   if class == nil then return refuse("%s", reason) end
   if yields(class) then
      local answer = guard_yielding(job, class)
      if answer ~= slurm.SUCCESS then return answer end
   elseif job.admin_comment == nil then
      job.admin_comment = "fish:class=" .. class
   end
   if job.partition == nil then job.partition = PARTITION_OF[class] end
   if USE_QOS and job.qos == nil then job.qos = QOS_OF[class] end
   if USE_QOS and yields(class) and job.qos ~= QOS_OF[class] then
      return refuse("%s runs under QOS %s only, not under %s", class, QOS_OF[class], job.qos)
   end
   return slurm.SUCCESS
end

local function is_yielding(partition, qos)
   for class, name in pairs(PARTITION_OF) do
      if yields(class) and (lists(partition, name) or qos == QOS_OF[class]) then return true end
   end
   return false
end

local function guard_modify(job, record, uid)
   if uid == 0 then return slurm.SUCCESS end
   local was, partition = is_yielding(record.partition), job.partition
   if was and partition ~= nil and partition ~= record.partition then
      return refuse("a cleaning job cannot move to %s", partition)
   end
   if was and job.requeue == 0 then return refuse("a cleaning job must stay requeueable") end
   if not was and is_yielding(partition) then
      return refuse("a job cannot move to %s: its script was not checked for preemption; submit it there", partition)
   end
   return slurm.SUCCESS
end

-- Closed for cleaning, open for everything else: a mistake in this file must not stop training.
local function guarded(guard, job, partition, ...)
   local fine, answer = pcall(guard, job, ...)
   if fine then return answer end
   slurm.log_error("fish: the guard failed: %s", tostring(answer))
   local also_fine, says_class = pcall(said, job, "FISH_CLASS")
   if is_yielding(partition, job.qos) or (also_fine and says_class ~= nil and yields(says_class)) then
      return refuse("internal error in the guard, so cleaning is refused: tell the administrators")
   end
   return slurm.SUCCESS
end

function slurm_job_submit(job, partitions, uid)
   return guarded(guard_submit, job, job.partition)
end

function slurm_job_modify(job, record, partitions, uid)
   return guarded(guard_modify, job, record.partition or job.partition, record, uid)
end

return slurm.SUCCESS
