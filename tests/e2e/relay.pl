# A relay on this machine that writes down all that passes: LISTEN TO FILE [FILE-BACK].
# FILE gets what the connecting side sends, FILE-BACK what is answered.
use strict; use IO::Socket::INET; use IO::Select;
my ($from, $to, @file) = @ARGV;
my $door = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $from, Listen => 5,
                                 ReuseAddr => 1) or die;
my @log = map { open(my $f, ">:raw", $_) or die; $f->autoflush(1); $f } @file;
my $set = IO::Select->new($door);
my (%other, %way);
while (my @ready = $set->can_read) {
    for my $s (@ready) {
        if ($s == $door) {
            my $in = $door->accept or next;
            my $on;
            for (1 .. 100) { # whoever is behind may be starting
                $on = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $to) and last;
                select(undef, undef, undef, 0.1);
            }
            if (!$on) { close $in; next }
            $other{$in} = $on; $other{$on} = $in;
            $way{$in} = 0; $way{$on} = 1;
            $set->add($in, $on);
        } elsif (sysread($s, my $bytes, 1 << 16)) {
            my $log = $log[$way{$s}];
            print $log $bytes if $log;
            for (my $at = 0; $at < length $bytes;) {
                my $n = syswrite($other{$s}, $bytes, length($bytes) - $at, $at);
                last unless defined $n;
                $at += $n;
            }
        } else {
            my $o = $other{$s};
            $set->remove($s, $o);
            close $s; close $o;
        }
    }
}
