// SPDX-License-Identifier: Apache-2.0

// The oracle answers, with Kubernetes' own code, the questions that Rayhook answers with its own:
//
//	oracle envvars           {"services": [Service...]}            -> {"env": {NAME: VALUE}}
//	oracle expand            {"text": "...", "env": {NAME: VALUE}} -> {"text": "..."}
//	oracle patch             {"doc": {...}, "patch": [...]}        -> {"doc": {...}, "strict": "..."} or {"error": "..."}
//	oracle validate-service  {"service": {...}}                    -> {"errors": ["...", ...]}
//	oracle validate-pod      {"pod": {...}}                        -> {"errors": ["...", ...]}
//
// One JSON value is read per line of stdin and one is written per line of stdout, so that one process serves
// thousands of cases. A question it cannot read ends it with a message: that is a fault of the test.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	"k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/kubelet/envvars"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

type question struct {
	Services []*v1.Service     `json:"services"`
	Text     string            `json:"text"`
	Env      map[string]string `json:"env"`
	Doc      json.RawMessage   `json:"doc"`
	Patch    json.RawMessage   `json:"patch"`
	Service  json.RawMessage   `json:"service"`
	Pod      json.RawMessage   `json:"pod"`
}

func envVars(q *question) (any, error) {
	env := map[string]string{}
	for _, v := range envvars.FromServices(q.Services) {
		env[v.Name] = v.Value
	}
	return map[string]any{"env": env}, nil
}

func expand(q *question) (any, error) {
	return map[string]any{"text": expansion.Expand(q.Text, expansion.MappingFuncFor(q.Env))}, nil
}

var strictDecoder = serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// applyPatch does what the API server's webhook dispatcher does with an answer. "strict" tells of members that the
// typed object would silently lose.
func applyPatch(q *question) (any, error) {
	patch, err := jsonpatch.DecodePatch(q.Patch)
	if err != nil {
		return map[string]any{"error": err.Error()}, nil
	}
	doc, err := patch.Apply(q.Doc)
	if err != nil {
		return map[string]any{"error": err.Error()}, nil
	}
	strict := ""
	if _, _, err := strictDecoder.Decode(doc, nil, nil); err != nil {
		strict = err.Error()
	}
	return map[string]any{"doc": json.RawMessage(doc), "strict": strict}, nil
}

// decode makes the internal, defaulted object of what a client sends, as the API server does.
func decode(raw json.RawMessage) (runtime.Object, error) {
	return runtime.Decode(legacyscheme.Codecs.UniversalDecoder(), raw)
}

func verdict(errs field.ErrorList) any {
	list := []string{}
	for _, err := range errs {
		list = append(list, err.Error())
	}
	return map[string]any{"errors": list}
}

func refused(err error) any { return map[string]any{"errors": []string{err.Error()}} }

func validateService(q *question) (any, error) {
	obj, err := decode(q.Service)
	if err != nil {
		return refused(err), nil
	}
	service, ok := obj.(*core.Service)
	if !ok {
		return nil, fmt.Errorf("not a Service: %T", obj)
	}
	// What the registry does before it validates (the allocation of addresses apart).
	if service.Spec.ClusterIP != "" && len(service.Spec.ClusterIPs) == 0 {
		service.Spec.ClusterIPs = []string{service.Spec.ClusterIP}
	}
	return verdict(validation.ValidateServiceCreate(service)), nil
}

func validatePod(q *question) (any, error) {
	obj, err := decode(q.Pod)
	if err != nil {
		return refused(err), nil
	}
	pod, ok := obj.(*core.Pod)
	if !ok {
		return nil, fmt.Errorf("not a Pod: %T", obj)
	}
	if pod.Name == "" && pod.GenerateName != "" {
		pod.Name = pod.GenerateName + "x2x4z"
	}
	opts := podutil.GetValidationOptionsFromPodSpecAndMeta(&pod.Spec, nil, &pod.ObjectMeta, nil)
	opts.ResourceIsPod = true
	return verdict(validation.ValidatePodCreate(pod, opts)), nil
}

var answers = map[string]func(*question) (any, error){
	"envvars":          envVars,
	"expand":           expand,
	"patch":            applyPatch,
	"validate-service": validateService,
	"validate-pod":     validatePod,
}

func serve(answer func(*question) (any, error)) error {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := bufio.NewWriter(os.Stdout)
	for {
		line, readErr := in.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var q question
			if err := json.Unmarshal(line, &q); err != nil {
				return fmt.Errorf("question %q: %w", strings.TrimSpace(string(line)), err)
			}
			a, err := answer(&q)
			if err != nil {
				return err
			}
			encoder := json.NewEncoder(out)
			encoder.SetEscapeHTML(false)
			if err := encoder.Encode(a); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return err
			}
		}
		if readErr != nil { // the end of stdin
			return nil
		}
	}
}

func main() {
	if len(os.Args) != 2 || answers[os.Args[1]] == nil {
		fmt.Fprintln(os.Stderr, "usage: oracle envvars|expand|patch|validate-service|validate-pod")
		os.Exit(2)
	}
	if err := serve(answers[os.Args[1]]); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}
