package seglog.oracle;

import java.io.IOException;
import java.util.Map;

/** Answers what is asked of remote segments: the part of {@link Oracle} that 4.4 compiles as it is. */
public final class TierOracle {
    private TierOracle() {
    }

    /** Runs until the input ends. */
    public static void main(String[] arguments) throws IOException {
        Answers.give(Map.of("tier", Tier::replay), System.out);
    }
}
