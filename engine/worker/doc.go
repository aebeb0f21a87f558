// Package worker performs steps for an engine on another machine: it pulls offers, claims
// them, fetches what the robot is given, runs it, sends back what it made, and beats.
//
// It owns worker.yaml, its folder of attempts, its cache, and its slots. It must not know a
// workspace, Git, or NATS: it speaks engine/remote/wire through a Link and over HTTPS, and
// listens on nothing.
//
// A Worker's lock guards what runs. Run owns the goroutines and waits for them.
//
// # worker.yaml
//
//	schema: 1
//	name: w1                 # that of the key, which is the default
//	slots: 4                 # robots at once; default: the cores
//	prefetch: 0              # claimed ahead, and their bytes fetched
//	labels: {gpu: a100}
//	folder: /var/lib/worker  # of attempts and the cache; default: in the system's temporary folder
//	cache: 20GiB             # of files by their digests; default: none
//	bytes: auto              # or transfer: not the file system, though it is shared
//	robots:
//	  - builtin: inventory
//	  - name: ocr-robot      # what a step's command names
//	    command: [/opt/ocr/ocr-robot]
//	    version: "4.1"
//	    instances: 2
//	    env: {OMP_NUM_THREADS: "2"}
//	    warmUp: [/opt/ocr/ocr-robot, --warm-up]
package worker
