#!/usr/bin/env bash
# Builds the site of docs/ into _output/site: static files, which any web server can serve. It fails for a link that leads nowhere, for a page
# that is in no section, where a page would load something from elsewhere, and where it takes more than a minute, or SITE_SECONDS. SITE_BASE=/federation/ builds it for that path.
set -euo pipefail
cd "$(dirname "$0")/.."
hack/install-tools.sh site
export REPOSITORY_ROOT=$PWD SITE_OUTPUT=$PWD/_output/site
work=_output/site-work # node_modules is not to lie among the sources
mkdir -p $work
rm -rf $work/.vitepress
cp -r hack/site/. $work/
cd $work
cmp -s package-lock.json node_modules/.of-lock || { npm ci --ignore-scripts --no-audit --no-fund && cp package-lock.json node_modules/.of-lock; }
began=$SECONDS
node collect.js
rm -rf "$SITE_OUTPUT"
node_modules/.bin/vitepress build .
node check.js
took=$((SECONDS - began))
[ $took -le "${SITE_SECONDS:-60}" ] || { echo "site: took $took s: must take ${SITE_SECONDS:-60} at most" >&2; exit 1; }
echo "_output/site, in $took s: to look at it, python3 -m http.server -d _output/site"
