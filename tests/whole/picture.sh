#!/bin/sh
# The picture of ranks over time is what docs/images/ranks.sh draws today, byte for byte, and what it says of the upper plan
# is so; draw_plan refuses what it cannot draw.
# usage: picture.sh PROGRAMS SOURCE
set -u
programs=$1 source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
bad=0
fail() { echo "FAIL: $*"; bad=1; }

sh "$source/docs/images/ranks.sh" "$programs" ranks.svg || fail "docs/images/ranks.sh"
cmp ranks.svg "$source/docs/images/ranks.svg" || fail "docs/images/ranks.svg is not what docs/images/ranks.sh draws; run it again"
[ "$(wc -c <ranks.svg)" -lt 100000 ] || fail "the picture has $(wc -c <ranks.svg) bytes"
grep -q "prefers-color-scheme:dark" ranks.svg || fail "no colours for dark pages"
grep -qE '<desc id="desc">.* one length and degree: [0-9.]+ s, [0-9.]+ % idle\. libhbp: [0-9.]+ s, [0-9.]+ % idle\.</desc>' ranks.svg ||
    fail "nothing for screen readers"
grep -q 'aria-labelledby="title desc"' ranks.svg || fail "what is for screen readers is not pointed at"

# The upper plan is the best that one length and degree do, by the comparison's own sweep, but for this library's packing.
"$programs/draw_lengths" "$source/examples/data/wikipedia.csv" l.npy 4000 1 131072
"$programs/hbp" compare l.npy --model llama-3.1-8b --machine h100:4 >compare.txt || fail "hbp compare"
upper=$(sed -n '/class="n"/s/.*one length and degree: \([0-9.]* s\), .*/\1/p' ranks.svg)
lower=$(sed -n 's/.*>libhbp: \([0-9.]* s\), .*/\1/p' ranks.svg)
grep -qE "^  isf +98,640 SP 8 c 0 +$upper " compare.txt || fail "ISF's best is not the $upper drawn: $(cat compare.txt)"
grep -qE "^  this plan +- +$lower " compare.txt || fail "this plan is not the $lower drawn: $(cat compare.txt)"
for way in no-packing sorted next-fit first-fit-decreasing best-fit-decreasing first-fit-shuffled spfhp random; do
    awk -v way=$way '
        /^A step holds/ { exit }
        function seconds() { for (i = NF; i > 1; i--) if ($i == "s" || $i == "min") return $(i - 1) * ($i == "s" ? 1 : 60) }
        $1 == "isf" { best = seconds() }
        $1 == way { other = seconds() }
        END { exit !(best > 0 && other >= best) }' compare.txt || fail "$way is faster than ISF: $(grep -E "^  $way " compare.txt | head -n 1)"
done

# Ranks that do not wait for one another: a pack begins when the last of its ranks is free, and a name is escaped.
"$programs/draw_lengths" "$source/examples/data/wikipedia.csv" few.npy 300 2 16384
"$programs/hbp" plan few.npy --model llama-3.1-8b --machine h100:1 --zero 1 --lockstep-ranks 1 -o lanes.msgpack >out || fail "lanes"
"$programs/draw_plan" lanes.svg 'a<b>&c' lanes.msgpack one || fail "draw_plan of lanes"
grep -q '<title id="title">a&lt;b&gt;&amp;c</title>' lanes.svg || fail "the title: $(head -c 300 lanes.svg)"
packs=$(sed -n 's/.* \([0-9]*\) packs on .*/\1/p' out)
[ "$(grep -c '<title>step' lanes.svg)" = "$packs" ] || fail "not all of $packs packs are drawn"
grep -q "one: $(sed -n 's/predicted epoch \([0-9.]* s\),.*/\1/p' out), $(sed -n 's/.* idle \([0-9]*\.[0-9]\).*/\1/p' out) % idle" lanes.svg ||
    fail "time and idle are not the command's: $(cat out)"

"$programs/draw_plan" out.svg 2>err
[ $? = 2 ] && grep -q "^usage: draw_plan" err || fail "no usage: $(cat err)"
"$programs/draw_plan" out.svg t none.msgpack one 2>err
[ $? = 1 ] && grep -q "cannot open none.msgpack" err || fail "an absent plan: $(cat err)"
"$programs/draw_lengths" "$source/examples/data/wikipedia.csv" many.npy 5100 2 2048
"$programs/hbp" plan many.npy --model llama-3.1-8b --machine h100:1 --method no-packing -o many.msgpack >out || fail "no packing"
"$programs/draw_plan" out.svg t many.msgpack one 2>err
[ $? = 1 ] && [ ! -e out.svg ] && grep -qE "many.msgpack has 5[0-9]{3} packs on 8 ranks; at most 5000 on 1024" err || fail "too many packs: $(cat err)"
"$programs/draw_plan" no/out.svg t lanes.msgpack one 2>err
[ $? = 1 ] && grep -q "no/out.svg" err || fail "a folder that is not there: $(cat err)"
[ $bad = 0 ] && echo "drawn again, byte for byte"
exit $bad
