package org.apache.kafka.storage.internals.log;

import java.io.File;
import java.util.List;
import kafka.log.AbortedTxn;
import scala.jdk.javaapi.CollectionConverters;

/** An index of aborted transactions, with the list that it gives since 3.5. */
public final class TransactionIndex implements AutoCloseable {
    private final kafka.log.TransactionIndex before;

    public TransactionIndex(long baseOffset, File file) {
        before = new kafka.log.TransactionIndex(baseOffset, file);
    }

    public void sanityCheck() {
        before.sanityCheck();
    }

    public List<AbortedTxn> allAbortedTxns() {
        return CollectionConverters.asJava(before.allAbortedTxns());
    }

    public TxnIndexSearchResult collectAbortedTxns(long fetchOffset, long upperBoundOffset) {
        var found = before.collectAbortedTxns(fetchOffset, upperBoundOffset);
        return new TxnIndexSearchResult(CollectionConverters.asJava(found.abortedTransactions()), found.isComplete());
    }

    @Override
    public void close() {
        before.close();
    }

    /** What a search found. */
    public record TxnIndexSearchResult(List<AbortedTxn> abortedTransactions, boolean isComplete) {
    }
}
