package orders

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"testing"
)

// Rule is a rule as in a rule file.
type Rule map[string]any

func setting(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

// klamm is what clients of Kafka connect to.
var klamm = setting("KLAMM", "127.0.0.1:19092")

// inject puts a rule in force until the test ends, and gives its name.
func inject(t *testing.T, rule Rule) string {
	t.Helper()
	var made struct{ Name string }
	if err := ask("POST", "/v1/rules", rule, &made); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := ask("DELETE", "/v1/rules/"+made.Name, nil, nil); err != nil {
			t.Error(err)
		}
	})
	return made.Name
}

// hits says how often a rule has acted.
func hits(t *testing.T, name string) int {
	t.Helper()
	var rule struct{ Hits int }
	if err := ask("GET", "/v1/rules/"+name, nil, &rule); err != nil {
		t.Fatal(err)
	}
	return rule.Hits
}

func ask(method, path string, body, into any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(text)
	}
	request, err := http.NewRequest(method, "http://"+setting("KLAMM_ADMIN", "127.0.0.1:19091")+path, sent)
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	said, err := io.ReadAll(answer.Body)
	if err != nil {
		return err
	}
	if answer.StatusCode >= 400 {
		return fmt.Errorf("%s %s: %s", method, path, said)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(said, into)
}
