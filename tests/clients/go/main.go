// franz-go as a program that tells event by event; ../drivers.py says how it is called.
package main

import (
	"fmt"
	"os"
	"time"
)

var actions = map[string]func(options){
	"produce":     produce,
	"transaction": transaction,
	"consume":     consume,
	"admin":       administrate,
}

func main() {
	if len(os.Args) < 4 || actions[os.Args[2]] == nil {
		fmt.Fprintln(os.Stderr, "usage: reactions BOOTSTRAP produce|transaction|consume|admin TOPIC [key=value ...]")
		os.Exit(2)
	}
	told := newOptions(os.Args[1], os.Args[3], os.Args[4:])
	done := make(chan struct{})
	go func() {
		actions[os.Args[2]](told)
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(told.timeout):
		say(event{"event": "error", "where": "program", "error": "NOT_DONE_IN_TIME", "message": "",
			"retriable": false, "fatal": false, "ms": told.timeout.Milliseconds()})
	}
	say(event{"event": "done"})
	os.Exit(0)
}
