package kafka.log.remote;

import java.util.NavigableMap;
import org.apache.kafka.server.log.remote.storage.RemoteLogSegmentMetadata;

/** What only the package of {@link RemoteLogManager} may call. */
public final class ManagerDoor {
    private ManagerDoor() {
    }

    public static boolean isWithin(RemoteLogSegmentMetadata segment, long logEnd, NavigableMap<Integer, Long> epochs) {
        return RemoteLogManager.isRemoteSegmentWithinLeaderEpochs(segment, logEnd, epochs);
    }
}
