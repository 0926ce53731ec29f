package seglog.cluster;

import java.util.Map;

/** Share groups, which this release does not offer without a preview. */
final class Shares {
    static final Map<String, Cluster.Operation> OPERATIONS = Map.of();

    private Shares() {
    }
}
