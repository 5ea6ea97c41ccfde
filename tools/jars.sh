#!/usr/bin/env bash
# Bring the jars of one Kafka version, as tests/brokers/VERSION/pom.xml lists them, into .jars/VERSION: tools/jars.sh VERSION
set -eu
cd "$(dirname "$0")/.."
plugin=org.apache.maven.plugins:maven-dependency-plugin:3.8.1
part=$PWD/.jars/$1.part

rm -rf "$part"
mvn -q -B -f "tests/brokers/$1/pom.xml" "$plugin:copy-dependencies" -DoutputDirectory="$part" </dev/null
rm -rf ".jars/$1"
mv "$part" ".jars/$1"
