"""The steps. Each is a pure function (clip, config) → clip | Reject, in a module of its own; `chain` puts them in order."""
