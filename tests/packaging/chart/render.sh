#!/usr/bin/env bash
# render.sh HELM: write rendered.json anew, after a change of packaging/helm. HELM is the folder of a clone of Helm (or of its git
# directory alone). Its loader, values and engine are built as they are at TAG; what asks a cluster is left out, so that Debian's
# Go and libraries are enough: golang-go, golang-github-{masterminds-sprig,gobwas-glob,burntsushi-toml,pkg-errors,
# cyphar-filepath-securejoin,xeipuuv-gojsonschema}-dev, golang-k8s-sigs-yaml-dev.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
helm=${1:?a clone of Helm}
TAG=v3.11.3
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
to=$work/src/helm.sh/helm/v3
mkdir -p "$to/internal/version" "$work/src/render"
git -C "$helm" archive "$TAG" pkg/engine pkg/chart pkg/chartutil internal/ignore internal/sympath pkg/time go.mod | tar -xC "$to"
find "$to" -name '*_test.go' -delete

cat >"$to/internal/version/version.go" <<GO
package version

type BuildInfo struct{ Version, GitCommit, GitTreeState, GoVersion string }

func Get() BuildInfo { return BuildInfo{Version: "$TAG"} }
GO
cat >"$to/pkg/engine/lookup_func.go" <<'GO'
package engine

type lookupFunc = func(apiversion, kind, namespace, name string) (map[string]interface{}, error)

func NewLookupFunction(config *struct{}) lookupFunc { return nil }
GO
sed -i -e '/"k8s.io\/client-go\/rest"/d' -e 's/\*rest\.Config/*struct{}/' "$to/pkg/engine/engine.go"
sed -i -e '/"k8s.io\//d' -e 's/k8sVersionMinor = .*/k8sVersionMinor = "30"/' \
    -e '/^func allKnownVersions/,/^}/c func allKnownVersions() VersionSet { return VersionSet{"v1", "apps/v1", "policy/v1"} }' \
    "$to/pkg/chartutil/capabilities.go"

cp "$here/render.go" "$work/src/render/"
cd "$work/src/render"
GO111MODULE=off GOPATH=$work:/usr/share/gocode GOCACHE=${GOCACHE:-$work/cache} go build -o "$work/render" .
"$work/render" "$here/../../../packaging/helm" "$here/least.yaml" "$here/all.yaml" >"$work/rendered.json"
python3 "$here/../test_chart.py" --sign "$work/rendered.json" "$here/rendered.json"
