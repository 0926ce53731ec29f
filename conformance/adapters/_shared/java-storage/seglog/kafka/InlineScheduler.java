package seglog.kafka;

import java.util.concurrent.Delayed;
import java.util.concurrent.FutureTask;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.TimeUnit;
import org.apache.kafka.server.util.Scheduler;

/** Does at once what a broker does in the background without delay, and never what it does later. */
public final class InlineScheduler implements Scheduler {
    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        Planned planned = new Planned(task);
        if (delayMs <= 0 && periodMs <= 0) {
            planned.run();
        }
        return planned;
    }

    @Override
    public void resizeThreadPool(int size) {
    }

    private static final class Planned extends FutureTask<Void> implements ScheduledFuture<Void> {
        Planned(Runnable task) {
            super(task, null);
        }

        @Override
        public long getDelay(TimeUnit unit) {
            return 0;
        }

        @Override
        public int compareTo(Delayed other) {
            return 0;
        }
    }
}
