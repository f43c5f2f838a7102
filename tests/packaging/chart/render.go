// render CHART VALUES…: the chart with each of the files of values, rendered by the engine of Helm, as one JSON document on
// stdout: {"helm": VERSION, "cases": {NAME: [objects]}}. Built and called by render.sh.
package main

import (
	"encoding/json"
	"fmt"
	"io/ioutil"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"sigs.k8s.io/yaml"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "render:", err)
		os.Exit(1)
	}
}

func objects(text string) []interface{} {
	var found []interface{}
	for _, part := range regexp.MustCompile(`(?m)^---$`).Split(text, -1) {
		var object map[string]interface{}
		must(yaml.UnmarshalStrict([]byte(part), &object))
		if len(object) > 0 {
			found = append(found, object)
		}
	}
	return found
}

func render(folder, file string) []interface{} {
	chart, err := loader.Load(folder)
	must(err)
	must(chart.Validate())
	text, err := ioutil.ReadFile(file)
	must(err)
	values, err := chartutil.ReadValues(text)
	must(err)
	release := chartutil.ReleaseOptions{Name: "lab", Namespace: "research", IsInstall: true, Revision: 1}
	all, err := chartutil.ToRenderValues(chart, values, release, nil)
	must(err)
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	must(err)
	var names []string
	for name := range files {
		if strings.HasSuffix(name, ".yaml") {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	var found []interface{}
	for _, name := range names {
		found = append(found, objects(files[name])...)
	}
	return found
}

func main() {
	cases := map[string]interface{}{}
	for _, file := range os.Args[2:] {
		cases[strings.TrimSuffix(filepath.Base(file), ".yaml")] = render(os.Args[1], file)
	}
	text, err := json.MarshalIndent(map[string]interface{}{"helm": chartutil.DefaultCapabilities.HelmVersion.Version, "cases": cases}, "", " ")
	must(err)
	fmt.Println(string(text))
}
