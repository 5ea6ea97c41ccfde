#!/usr/bin/env bash
# Bring the jars that a pom lists into a folder: tools/jars.sh POM FOLDER
set -eu
cd "$(dirname "$0")/.."
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
part=$PWD/$2.part

rm -rf "$part"
mvn -q -B -f "$1" "$plugin:copy-dependencies" -DoutputDirectory="$part" </dev/null
rm -rf "$2"
mv "$part" "$2"
