# SPDX-License-Identifier: Apache-2.0
# The words that a run is told to ns-2 with, and what ns-2 prints of it: a line for each sample of a connection
# (socket) and of a port (queue), one for each receiver (arrived) and each flow (received), times in microseconds.
# Which packets arrive marked is left in the file "marks", in ns-2's own trace format.

set ns [new Simulator]
set connections {}
set ports {}
set receivers {}

proc microseconds {} {
    global ns
    return [expr {round([$ns now] * 1e6)}]
}

# One direction of a link. A queue must be given its parameters before there is one.
proc port {number from to mbps delay_us kind limit red} {
    global ns nodes ports
    foreach {name value} $red { Queue/RED set $name $value }
    $ns simplex-link $nodes($from) $nodes($to) ${mbps}Mb [expr {$delay_us / 1e6}]s $kind
    $ns queue-limit $nodes($from) $nodes($to) $limit
    if {$number ne "-"} {
        lappend ports [list $number [$ns monitor-queue $nodes($from) $nodes($to) ""]]
    }
}

# The port towards a receiver, where its arrivals are counted; its marked ones are filtered out of the trace.
proc receiver {name from to marked} {
    global ns nodes receivers marks
    lappend receivers [list $name [$ns monitor-queue $nodes($from) $nodes($to) ""]]
    if {$marked} {
        if {![info exists marks]} { set marks [open "| grep -F E > marks" w] }
        set link [$ns link $nodes($from) $nodes($to)]
        set trace [$ns create-trace Recv $marks $nodes($from) $nodes($to)]
        set last [$link set ttl_]
        $trace target [$last target]
        $last target $trace
    }
}

# Parameters are set when the agents are attached: attaching sets some of them itself.
proc connection {flow stream from to source sink start_us stop_us settings} {
    global ns nodes connections
    set tcp [new Agent/$source]
    set end [new Agent/$sink]
    $ns attach-agent $nodes($from) $tcp
    $ns attach-agent $nodes($to) $end
    $ns connect $tcp $end
    foreach {name value} $settings { $tcp set $name $value }
    set ftp [new Application/FTP]
    $ftp attach-agent $tcp
    $ns at [expr {$start_us / 1e6}] "$ftp start"
    $ns at [expr {$stop_us / 1e6}] "$ftp stop"
    lappend connections [list $flow $stream $tcp $start_us $stop_us]
    $ns at [expr {$stop_us / 1e6}] "puts \"received $flow \[expr {\[$tcp set ack_\] + 1}\] $stop_us\""
}

proc sample_sockets {every_us end_us} {
    global ns connections
    set now [microseconds]
    foreach connection $connections {
        foreach {flow stream tcp start_us stop_us} $connection {}
        if {$now < $start_us || $now >= $stop_us} continue
        set values {}
        foreach name {cwnd_ ssthresh_ t_seqno_ ack_ rtt_ nrexmitpack_ ncwndcuts_} { lappend values [$tcp set $name] }
        puts "socket $now $flow $stream $values"
    }
    if {$now + $every_us < $end_us} {
        $ns at [expr {($now + $every_us) / 1e6}] "sample_sockets $every_us $end_us"
    }
}

proc sample_queues {every_us end_us} {
    global ns ports receivers
    set now [microseconds]
    foreach port $ports {
        foreach {number monitor} $port {}
        set values {}
        foreach name {pkts_ pdrops_ pdepartures_} { lappend values [$monitor set $name] }
        puts "queue $now $number $values"
    }
    foreach receiver $receivers {
        foreach {name monitor} $receiver {}
        puts "arrived $now $name [$monitor set pdepartures_]"
    }
    if {$now + $every_us < $end_us} {
        $ns at [expr {($now + $every_us) / 1e6}] "sample_queues $every_us $end_us"
    }
}

proc finish {} {
    global marks
    # grep says by its status that no packet was marked: no error.
    if {[info exists marks]} { catch {close $marks} }
    exit 0
}
