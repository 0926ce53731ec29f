package seglog.oracle;

import java.util.concurrent.ScheduledFuture;
import org.apache.kafka.server.util.Scheduler;

/** Does at once what a broker does in the background without delay, and never what it does later. */
final class InlineScheduler implements Scheduler {
    @Override
    public void startup() {
    }

    @Override
    public void shutdown() {
    }

    @Override
    public ScheduledFuture<?> schedule(String name, Runnable task, long delayMs, long periodMs) {
        if (delayMs <= 0 && periodMs <= 0) {
            task.run();
        }
        return null;
    }

    @Override
    public void resizeThreadPool(int size) {
    }
}
