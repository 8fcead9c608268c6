package node

import "testing"

func TestReferencesExpandAsInKubernetes(t *testing.T) {
	values := map[string]string{"NAME": "value", "EMPTY": ""}
	for text, want := range map[string]string{
		"plain":                "plain",
		"$(NAME)":              "value",
		"--a=$(NAME)/$(NAME)":  "--a=value/value",
		"[$(EMPTY)]":           "[]",
		"$(UNKNOWN)":           "$(UNKNOWN)",
		"$$(NAME)":             "$(NAME)",
		"$$$$":                 "$$",
		"$NAME":                "$NAME",
		"$(NAME":               "$(NAME",
		"costs 5$":             "costs 5$",
		"$(UNKNOWN) $(NAME) $": "$(UNKNOWN) value $",
	} {
		if got := expand(text, values); got != want {
			t.Errorf("expand(%q) = %q, want %q", text, got, want)
		}
	}
}
