#!/usr/bin/env bash
# Builds the project's site in a folder: the page of the demo's run, as index.html.
#
#   docs/site/build.sh FOLDER              as .github/workflows/site.yml does
#   MINUTES=0.1 docs/site/build.sh FOLDER  trains for a shorter time
set -euo pipefail
folder=$1
minutes=${MINUTES:-2}

cd "$(dirname "$0")/../.."
run=$(mktemp -d)/plays # the page is called plays
trap 'rm -rf "$(dirname "$run")"' EXIT

python train.py data/plays.txt --minutes "$minutes" --out "$run"
mkdir -p "$folder"
python -m minigpt page "$run" --out "$folder/index.html"
