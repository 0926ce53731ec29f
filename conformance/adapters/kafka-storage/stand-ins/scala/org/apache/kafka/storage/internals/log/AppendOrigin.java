package org.apache.kafka.storage.internals.log;

/** Who appends, as the enumeration that it is since 3.5. */
public enum AppendOrigin {
    REPLICATION(kafka.log.AppendOrigin.Replication$.MODULE$),
    COORDINATOR(kafka.log.AppendOrigin.Coordinator$.MODULE$),
    CLIENT(kafka.log.AppendOrigin.Client$.MODULE$),
    RAFT_LEADER(kafka.log.AppendOrigin.RaftLeader$.MODULE$);

    final kafka.log.AppendOrigin before;

    AppendOrigin(kafka.log.AppendOrigin before) {
        this.before = before;
    }
}
