import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.List;
import java.util.Random;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.message.KRaftVersionRecord;
import org.apache.kafka.common.message.LeaderChangeMessage;
import org.apache.kafka.common.message.SnapshotFooterRecord;
import org.apache.kafka.common.message.SnapshotHeaderRecord;
import org.apache.kafka.common.message.VotersRecord;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.common.record.internal.CompressionType;
import org.apache.kafka.common.record.internal.ControlRecordType;
import org.apache.kafka.common.record.internal.EndTransactionMarker;
import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MemoryRecordsBuilder;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.record.internal.RecordBatch;
import org.apache.kafka.common.utils.ByteBufferOutputStream;

/**
 * Record batches that Kafka's own classes wrote, or what those classes read in other batches.
 *
 * "write SEED MAGIC,...": random batches, each twice in a row, over every codec and kind; a line has their hex and what
 * they hold. "read": lines of hex on the standard input; a line has what they hold, or an error.
 */
public final class Records {
    private static final JsonNodeFactory NODES = JsonNodeFactory.instance;
    private static final PrintStream OUT = new PrintStream(System.out, false);
    private static final String[] KINDS = {"plain", "idempotent", "transactional", "horizon", "control"};
    private static final long NOW = 1_700_000_000_000L;

    public static void main(String[] arguments) throws Exception {
        if (arguments[0].equals("read")) {
            BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
            for (String line = in.readLine(); line != null; line = in.readLine()) {
                OUT.println(read(HexFormat.of().parseHex(line)));
            }
        } else {
            Random random = new Random(Long.parseLong(arguments[1]));
            for (String magic : arguments[2].split(",")) {
                writeAll(Byte.parseByte(magic), random);
            }
        }
        OUT.flush();
    }

    private static void writeAll(byte magic, Random random) {
        for (CompressionType codec : CompressionType.values()) {
            for (TimestampType timestamps : TimestampType.values()) {
                boolean without = timestamps == TimestampType.NO_TIMESTAMP_TYPE;
                if (codec == CompressionType.ZSTD && magic < 2 || without != (magic == 0)) {
                    continue;
                }
                for (String kind : magic < 2 ? new String[] {"plain"} : KINDS) {
                    for (int count : new int[] {1, 3, 70 + random.nextInt(200)}) {
                        ByteBufferOutputStream out = new ByteBufferOutputStream(512);
                        write(out, magic, codec, timestamps, kind, count, random);
                        write(out, magic, codec, timestamps, kind, count, random);
                        ByteBuffer buffer = out.buffer();
                        buffer.flip();
                        byte[] bytes = new byte[buffer.remaining()];
                        buffer.get(bytes);
                        OUT.println(read(bytes).put("hex", HexFormat.of().formatHex(bytes)));
                    }
                }
            }
        }
    }

    private static void write(ByteBufferOutputStream out, byte magic, CompressionType codec, TimestampType timestamps,
                              String kind, int count, Random random) {
        boolean control = kind.equals("control");
        boolean plain = kind.equals("plain") || kind.equals("horizon");
        long offset = random.nextInt(2) * (random.nextLong() >>> 24);
        ByteBufferOutputStream one = new ByteBufferOutputStream(512);
        MemoryRecordsBuilder builder = new MemoryRecordsBuilder(
            one, magic, Compression.of(codec).build(), timestamps, offset, NOW,
            plain ? -1 : random.nextInt(1 << 30), (short) (plain ? -1 : random.nextInt(100)),
            plain || control ? -1 : random.nextInt(1000), control || kind.equals("transactional"), control,
            random.nextInt(50) - 1, Integer.MAX_VALUE, kind.equals("horizon") ? NOW + 5 : RecordBatch.NO_TIMESTAMP);
        if (control) {
            appendControl(builder, count, random);
        }
        for (int index = 0; index < count && !control; index++) {
            long timestamp = magic == 0 ? -1 : NOW + random.nextInt(1 << random.nextInt(30)) - random.nextInt(1000);
            byte[] key = bytes(random);
            byte[] value = bytes(random);
            Header[] headers = new Header[magic < 2 || random.nextBoolean() ? 0 : random.nextInt(4)];
            for (int header = 0; header < headers.length; header++) {
                headers[header] = new RecordHeader("näme".repeat(random.nextInt(40) / 13), bytes(random));
            }
            builder.appendWithOffset(offset, timestamp, key, value, headers);
            offset += 1 + (random.nextInt(10) == 0 ? random.nextInt(100) : 0);
        }
        builder.close();
        out.write(builder.build().buffer());
    }

    private static void appendControl(MemoryRecordsBuilder builder, int count, Random random) {
        LeaderChangeMessage.Voter voter = new LeaderChangeMessage.Voter().setVoterId(1);
        switch (count < 3 ? 0 : random.nextInt(6)) {
            case 0 -> builder.appendEndTxnMarker(NOW, new EndTransactionMarker(
                random.nextBoolean() ? ControlRecordType.COMMIT : ControlRecordType.ABORT, random.nextInt(1 << 20)));
            case 1 -> builder.appendLeaderChangeMessage(
                NOW, new LeaderChangeMessage().setLeaderId(random.nextInt(9)).setVoters(List.of(voter)));
            case 2 -> builder.appendSnapshotHeaderMessage(
                NOW, new SnapshotHeaderRecord().setLastContainedLogTimestamp(random.nextLong()));
            case 3 -> builder.appendSnapshotFooterMessage(NOW, new SnapshotFooterRecord());
            case 4 -> builder.appendKRaftVersionMessage(NOW, new KRaftVersionRecord().setKRaftVersion((short) 1));
            default -> builder.appendVotersMessage(NOW, new VotersRecord().setVoters(List.of(
                new VotersRecord.Voter().setVoterId(3).setVoterDirectoryId(Uuid.ONE_UUID))));
        }
    }

    private static byte[] bytes(Random random) {
        if (random.nextInt(6) == 0) {
            return null;
        }
        byte[] bytes = new byte[random.nextInt(1 << random.nextInt(random.nextInt(20) == 0 ? 15 : 8))];
        if (random.nextBoolean()) {
            random.nextBytes(bytes);
        }
        return bytes;
    }

    private static ObjectNode read(byte[] bytes) {
        ObjectNode found = NODES.objectNode();
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(bytes));
            ArrayNode batches = NODES.arrayNode();
            for (RecordBatch batch : records.batches()) {
                batches.add(described(batch));
            }
            found.put("valid_bytes", records.validBytes()).set("batches", batches);
        } catch (RuntimeException | StackOverflowError reason) {
            found.put("error", reason.toString());
        }
        return found;
    }

    private static ObjectNode described(RecordBatch batch) {
        ObjectNode found = NODES.objectNode();
        found.put("magic", batch.magic()).put("base_offset", batch.baseOffset()).put("last_offset", batch.lastOffset());
        found.put("record_count", batch.countOrNull()).put("codec", batch.compressionType().name);
        found.put("timestamp_type", batch.timestampType().name).put("max_timestamp", batch.maxTimestamp());
        found.put("is_transactional", batch.isTransactional()).put("is_control", batch.isControlBatch());
        found.put("delete_horizon", batch.deleteHorizonMs().isPresent() ? batch.deleteHorizonMs().getAsLong() : null);
        found.put("partition_leader_epoch", batch.partitionLeaderEpoch()).put("producer_id", batch.producerId());
        found.put("producer_epoch", batch.producerEpoch()).put("base_sequence", batch.baseSequence());
        found.put("crc", batch.checksum()).put("crc_ok", batch.isValid()).put("size", batch.sizeInBytes());
        ArrayNode records = NODES.arrayNode();
        for (Record record : batch) {
            ObjectNode one = NODES.objectNode();
            one.put("offset", record.offset()).put("timestamp", record.timestamp());
            one.put("key", taken(record.key())).put("value", taken(record.value()));
            ArrayNode headers = NODES.arrayNode();
            for (Header header : record.headers()) {
                headers.add(NODES.arrayNode().add(header.key()).add(header.value()));
            }
            one.set("headers", headers);
            if (batch.isControlBatch()) {
                ControlRecordType type = ControlRecordType.parse(record.key());
                one.put("control_type", type.name());
                if (type == ControlRecordType.COMMIT || type == ControlRecordType.ABORT) {
                    one.put("coordinator_epoch", EndTransactionMarker.deserialize(record).coordinatorEpoch());
                }
            }
            records.add(one);
        }
        found.set("records", records);
        return found;
    }

    private static byte[] taken(ByteBuffer buffer) {
        if (buffer == null) {
            return null;
        }
        byte[] bytes = new byte[buffer.remaining()];
        buffer.duplicate().get(bytes);
        return bytes;
    }
}
