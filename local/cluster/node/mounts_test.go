package node

import "testing"

func TestMountPathsBecomeDirectoriesOnlyAsWholePaths(t *testing.T) {
	mounts := []mount{{Path: "/data", Dir: "/state/d"}, {Path: "/data/models", Dir: "/big"}}
	for text, want := range map[string]string{
		"/data":                         "/state/d",
		"/data/":                        "/state/d/",
		"/data/in.wav":                  "/state/d/in.wav",
		"/data/models/s2":               "/big/s2",
		"--input=/data/in":              "--input=/state/d/in",
		"file:///data/in":               "file:///state/d/in",
		"/data:/data/models":            "/state/d:/big",
		"cat /data/a >/data/b":          "cat /state/d/a >/state/d/b",
		"/database":                     "/database",
		"/srv/data":                     "/srv/data",
		"s3://bucket/data":              "s3://bucket/data",
		"https://host/data/models":      "https://host/data/models",
		"nothing":                       "nothing",
		`{"path": "/data/x", "n": "/"}`: `{"path": "/state/d/x", "n": "/"}`,
	} {
		if got := rewriteMounts(text, mounts); got != want {
			t.Errorf("rewriteMounts(%q) = %q, want %q", text, got, want)
		}
	}
}
