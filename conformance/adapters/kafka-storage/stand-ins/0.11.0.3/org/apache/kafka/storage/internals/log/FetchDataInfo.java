package org.apache.kafka.storage.internals.log;

import java.util.List;
import java.util.Optional;
import org.apache.kafka.common.message.FetchResponseData.AbortedTransaction;
import org.apache.kafka.common.record.Records;
import scala.jdk.javaapi.CollectionConverters;
import scala.jdk.javaapi.OptionConverters;

/** What a fetch found, with the fields that it has since 3.5. */
public final class FetchDataInfo {
    public final Records records;
    public final Optional<List<AbortedTransaction>> abortedTransactions;

    FetchDataInfo(kafka.server.FetchDataInfo before) {
        records = before.records();
        abortedTransactions = OptionConverters.toJava(before.abortedTransactions()).map(
            found -> CollectionConverters.asJava(found).stream()
                .map(one -> new AbortedTransaction(one.producerId, one.firstOffset)).toList());
    }
}
