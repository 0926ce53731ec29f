package seglog.kafka;

import java.util.function.Supplier;
import org.apache.kafka.common.utils.Time;

/** A clock that stands where it was put, so that the same request gives the same bytes. */
public final class StandingTime implements Time {
    private long nowMs;

    public StandingTime(long nowMs) {
        this.nowMs = nowMs;
    }

    public void set(long time) {
        nowMs = time;
    }

    @Override
    public long milliseconds() {
        return nowMs;
    }

    @Override
    public long nanoseconds() {
        return nowMs * 1_000_000;
    }

    @Override
    public void sleep(long ms) {
        nowMs += ms;
    }

    public long hiResClockMs() { // releases up to 2.0 have no default for it, and nothing to wait for
        return nowMs;
    }

    public void waitObject(Object object, Supplier<Boolean> condition, long deadlineMs) {
        throw new UnsupportedOperationException("nothing here waits");
    }
}
