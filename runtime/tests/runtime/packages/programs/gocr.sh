# A 7 of 20 rows, drawn in text.
{
    printf 'P1\n28 28\n'
    for row in {0..27}; do
        for column in {0..27}; do
            if ((row >= 4 && row < 7 && column >= 6 && column < 20)) ||
                ((row >= 7 && row < 24 && column >= 19 - (row - 7) / 2 && column < 22 - (row - 7) / 2)); then
                printf 1
            else
                printf 0
            fi
        done
        echo
    done
} >digit.pbm
$RUN /usr/bin/gocr digit.pbm
