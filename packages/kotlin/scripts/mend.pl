# What uniffi has no options for. Every change must find what it changes: another version of uniffi may have written something else.
use strict;
use warnings;

local $/;
while (my $file = shift @ARGV) {
    open(my $in, '<', $file) or die "$file: $!";
    my $text = <$in>;
    close $in;
    my $change = sub {
        my ($what, $done) = @_;
        $done or die "$file: found nothing to change: $what\n";
    };

    # Calls use memory that is lent to their thread (CallMemory.kt), not structures of their own.
    $change->('the status of calls', $text =~ s/\buniffi_out_err: UniffiRustCallStatus\b/uniffi_out_err: Pointer/g);
    $change->('what hands it on', $text =~ s/\(((?:Long, )?)UniffiRustCallStatus\) -> (?=[A-Z]\b)/($1Pointer) -> /g);
    $change->('how a call is made', $text =~ s/^private inline fun <U, E: kotlin\.Exception> uniffiRustCallWithError\(.*?^}\n//ms);
    $change->('how its end is looked at', $text =~ s/^private fun<E: kotlin\.Exception> uniffiCheckCallStatus\(.*?^}\n//ms);
    $change->('buffers', $text =~ s/^    class ByValue: RustBuffer\(\), Structure\.ByValue\n/    class ByValue: RustBuffer(), Structure.ByValue {\n        override fun autoAllocate(size: Int) = CallMemory.Loan.ofThread().buffer(size)\n    }\n/m);

    $change->('how a buffer is freed', $text =~ s/(_rustbuffer_free\()buf, /$1buf.inCall(), /);

    # The handle for a call is made when all of its arguments are ready: one that cannot be converted would leave it behind.
    $change->('what lends handles', $text =~ s/(fun <R> callWithHandle\(block: \()handle: Long(\) -> R\): R)/$1$2/g);
    $change->('where they are lent', $text =~ s/return block\(this\.uniffiCloneHandle\(\)\)/return block()/g);
    $change->('calls with handles', $text =~ s{(callWithHandle \{\s*uniffiRustCall(?:WithError)?\(\w*\) \{ _status ->\s*UniffiLib\.\w+\()\s*it,([^{}]*?)_status\)}{
        my ($call, $arguments) = ($1, $2);
        $arguments =~ s/(?=FfiConverter\w+\.lower\((`\w+`)\))/$1 = /g;
        "$call$arguments`ptr` = uniffiCloneHandle(), uniffi_out_err = _status)"
    }ge);
    $change->('waits with handles', $text =~ s/callWithHandle \{ uniffiHandle ->(\s*UniffiLib\.\w+\(\s*)uniffiHandle,/callWithHandle {$1uniffiCloneHandle(),/g);

    # Who waited is told of the end in a way of our own (Wake.kt).
    $change->('the end of a wait', $text =~ s/uniffiContinuationHandleMap\.remove\(data\)\.resume\(pollResult\)/wake(uniffiContinuationHandleMap.remove(data), pollResult)/);

    # Everything at the top level becomes internal: users see the hand-written layer only.
    $change->('declarations', $text =~ s/^(public )?(?=((open|data|sealed|enum|abstract|inline) )*(class|interface|object|fun) )/internal /mg);
    $text =~ s/^(\s*\*\/ )(?=fun `)/$1internal /mg;
    # Its warnings are not ours to mend.
    $change->('suppressed warnings', $text =~ s/^(\@file:Suppress\()/$1"warnings", /mg);

    open(my $out, '>', $file) or die "$file: $!";
    print $out $text;
    close $out or die "$file: $!";
}
