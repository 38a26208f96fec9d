# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
#
# One Kafka node as a process: the jars, the Java options, format, start, ready, stop. Used by kafka and kafka3.
# A node is its folder: server.properties, data/, logs/, pid.

kafka_version=4.4.0

# Prints the folder of jars: KAFKA_HOME/libs if that is set, else Maven artifacts fetched once into the cache.
kafka_jars() {
    local cache jars work
    if [ -n "${KAFKA_HOME:-}" ]; then
        compgen -G "$KAFKA_HOME/libs/kafka_*.jar" >/dev/null || die "there is no libs/kafka_*.jar in KAFKA_HOME=$KAFKA_HOME"
        printf '%s/libs\n' "$(cd "$KAFKA_HOME" && pwd -P)"
        return
    fi
    cache=$(cache_default)
    jars=$cache/kafka-$kafka_version/jars
    if [ ! -f "$jars/.complete" ]; then
        command -v mvn >/dev/null 2>&1 ||
            die "no Kafka: KAFKA_HOME is not set, and without Maven (mvn) its jars cannot be fetched. Install maven (deploy/packages does), or set KAFKA_HOME to an unpacked Kafka 4 distribution"
        mkdir -p "$cache/kafka-$kafka_version" || die "cannot make $cache; choose another folder with ONCEWARD_CACHE"
        (
            flock -w 600 8
            [ ! -f "$jars/.complete" ] || exit 0
            say "fetching Kafka $kafka_version with Maven into $jars (once)" >&2
            work=$(mktemp -d "$cache/kafka-$kafka_version/fetch.XXXXXX")
            # In the fetch folder, so that Maven writes nothing into the checkout.
            cp "$here/kafka-pom.xml" "$work/pom.xml"
            if ! (cd "$work" && mvn -q -B -Dkafka.version="$kafka_version" dependency:copy-dependencies \
                -DoutputDirectory="$work/jars") >"$work/maven.log" 2>&1; then
                tail -n 20 "$work/maven.log" >&2
                rm -rf "$work"
                exit 1
            fi
            touch "$work/jars/.complete"
            chmod 755 "$work/jars"
            rm -rf "$jars"
            mv "$work/jars" "$jars"
            rm -rf "$work"
        ) 8>"$cache/kafka-$kafka_version/lock" || die "Maven could not fetch Kafka $kafka_version (no access to its repository?). Set KAFKA_HOME to an unpacked Kafka 4 distribution instead"
    fi
    printf '%s\n' "$jars"
}

find_java() {
    local java=java major
    [ -z "${JAVA_HOME:-}" ] || java=$JAVA_HOME/bin/java
    command -v "$java" >/dev/null 2>&1 ||
        die "no Java: Kafka needs Java 17 or later. Install openjdk-17-jre-headless (deploy/packages does) or set JAVA_HOME"
    major=$("$java" -version 2>&1 | sed -n 's/.*version "\([0-9]*\).*/\1/p' | head -n 1)
    [ "${major:-0}" -ge 17 ] || die "$java is version ${major:-unknown}; Kafka needs Java 17 or later"
    readlink -f "$(command -v "$java")"
}

# Sets java, classpath, archive and java_options. The class-data archive halves the time to start; it is written when a
# broker ends for the first time, and belongs to one Java, one set of jars and one user's cache.
prepare_java() {
    local jars key jar
    java=$(find_java)
    jars=$(kafka_jars)
    as_service test -r "$(printf '%s\n' "$jars"/kafka_*.jar | head -n 1)" ||
        die "the service user cannot read the jars in $jars; choose another folder with ONCEWARD_CACHE or KAFKA_HOME"
    classpath=
    for jar in "$jars"/*.jar; do classpath+=${classpath:+:}$jar; done
    key=$({ "$java" -version 2>&1; stat -c '%n %s %Y' "$jars"/*.jar; } | sha256sum | cut -c1-16)
    archive=$(cache_default)/kafka-classes-$key.jsa
    # shellcheck disable=SC2206 # Kafka's own variables hold lists of options.
    java_options=(${KAFKA_HEAP_OPTS:--Xms64m -Xmx384m} -XX:+UseSerialGC -XX:-UsePerfData -Xshare:auto ${KAFKA_OPTS:-})
}

# Log configuration: what a person wants to read after a failure, and the line that says "ready".
node_log_settings() { # FOLDER
    write_file "$1/log4j2.properties" <<'EOF'
status = error
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{yyyy-MM-dd HH:mm:ss.SSS} %p %c{1} %m%n
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
logger.server.name = kafka.server.KafkaRaftServer
logger.server.level = info
logger.version.name = org.apache.kafka.common.utils.AppInfoParser
logger.version.level = info
logger.broker.name = kafka.server
logger.broker.level = info
logger.config.name = org.apache.kafka.common.config
logger.config.level = warn
logger.kafkaconfig.name = kafka.server.KafkaConfig
logger.kafkaconfig.level = warn
EOF
}

node_pid() { pid_in "$1/pid" "$1/server.properties"; } # FOLDER

# node_version FOLDER: of the running process, by the jar that it was started from.
node_version() {
    local pid
    pid=$(node_pid "$1") || return 1
    tr '\0' : <"/proc/$pid/cmdline" | tr : '\n' | sed -n 's|.*/kafka_[0-9.]*-\([0-9.]*\)\.jar$|\1|p'
}

# node_format FOLDER CLUSTER_ID OPTION...: once per node.
node_format() {
    local folder=$1 cluster=$2 share=()
    shift 2
    [ ! -f "$folder/data/meta.properties" ] || return 0
    rm -rf "$folder/data"
    make_folder "$folder/data"
    [ ! -r "$archive" ] || share=(-XX:SharedArchiveFile="$archive")
    as_service "$java" "${java_options[@]}" -XX:TieredStopAtLevel=1 "${share[@]}" -cp "$classpath" kafka.tools.StorageTool \
        format --cluster-id "$cluster" --config "$folder/server.properties" "$@" >"$folder/format.log" 2>&1 9>&- || {
        tail -n 20 "$folder/format.log" >&2
        rm -rf "$folder/data"
        die "Kafka's storage could not be formatted"
    }
}

# node_launch FOLDER: starts the process in the background and remembers its pid. It is not ready yet.
node_launch() {
    local folder=$1 share=()
    if [ -r "$archive" ]; then
        share=(-XX:SharedArchiveFile="$archive")
    else
        printf '%s\n' "$archive" | write_file "$folder/archive"
        share=(-XX:ArchiveClassesAtExit="$folder/classes.jsa")
    fi
    [ ! -s "$folder/server.log" ] || mv -f "$folder/server.log" "$folder/server.log.1"
    rm -f "$folder/pid"
    (exec_as_service setsid "$java" "${java_options[@]}" "${share[@]}" -Dlog4j2.configurationFile="$folder/log4j2.properties" \
        -cp "$classpath" kafka.Kafka "$folder/server.properties") </dev/null >"$folder/server.log" 2>&1 9>&- &
    node_launched=$!
    await_exec "$node_launched" "$folder/server.properties"
}

# node_await FOLDER PORT SECONDS: until the broker says that it serves.
node_await() {
    local folder=$1 port=$2 deadline=$((SECONDS + $3))
    while :; do
        if grep -q 'Kafka Server started' "$folder/server.log" 2>/dev/null && port_is_taken "$port"; then return 0; fi
        node_pid "$folder" >/dev/null || { tail -n 20 "$folder/server.log" >&2; die "the broker ended while starting; its log is $folder/server.log"; }
        [ "$SECONDS" -lt "$deadline" ] || { tail -n 20 "$folder/server.log" >&2; die "the broker is not ready after $3 s; its log is $folder/server.log"; }
        sleep 0.1
    done
}

# node_keep_archive FOLDER: what an ended broker left becomes the archive of all later ones.
node_keep_archive() {
    local folder=$1 kept
    kept=$(remembered "$folder/archive" '')
    if [ -s "$folder/classes.jsa" ] && [ -n "$kept" ] && [ ! -e "$kept" ] && mkdir -p "$(dirname "$kept")" 2>/dev/null; then
        { cp "$folder/classes.jsa" "$kept.$$" && chmod 644 "$kept.$$" && mv -f "$kept.$$" "$kept"; } 2>/dev/null || rm -f "$kept.$$"
    fi
    rm -f "$folder/classes.jsa"
}

# node_stop FOLDER SECONDS
node_stop() {
    local folder=$1 pid
    pid=$(node_pid "$folder" || true)
    [ -n "$pid" ] || return 1
    kill -s TERM "$pid"
    kill -s CONT "$pid" 2>/dev/null || true
    if ! wait_gone "$pid" "$folder/server.properties" "$2"; then
        say "did not stop within $2 s: killed"
        kill -s KILL "$pid" 2>/dev/null || true
        wait_gone "$pid" "$folder/server.properties" 15 || die "process $pid does not end"
    fi
    rm -f "$folder/pid"
    node_keep_archive "$folder"
}

# Settings that every node has, one broker or three. With the last two there is a listener of its own for a proxy: whoever
# comes through it is told to come back to ADVERTISED_PORT, where the proxy stands. Everybody else goes past it.
node_settings() { # FOLDER ID PORT CONTROLLER_PORT REPLICAS MIN_ISR [PROXIED_PORT ADVERTISED_PORT]
    local proxied='' advertised='' protocol=''
    if [ -n "${8:-}" ]; then
        proxied=,PROXIED://127.0.0.1:$7 advertised=,PROXIED://127.0.0.1:$8 protocol=,PROXIED:PLAINTEXT
    fi
    cat <<EOF
process.roles=broker,controller
node.id=$2
listeners=PLAINTEXT://127.0.0.1:$3,CONTROLLER://127.0.0.1:$4$proxied
advertised.listeners=PLAINTEXT://127.0.0.1:$3,CONTROLLER://127.0.0.1:$4$advertised
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT$protocol
controller.listener.names=CONTROLLER
log.dirs=$1/data
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
offsets.topic.num.partitions=4
offsets.topic.replication.factor=$5
transaction.state.log.num.partitions=4
transaction.state.log.replication.factor=$5
transaction.state.log.min.isr=$6
share.coordinator.state.topic.num.partitions=2
share.coordinator.state.topic.replication.factor=$5
share.coordinator.state.topic.min.isr=$6
default.replication.factor=$5
min.insync.replicas=$6
EOF
}
