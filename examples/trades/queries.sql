-- 64 standing queries over one stream of trades (ts, symbol, price, volume, exchange), in this order: prices,
-- turnover, sizes, baskets, risk, breadth, alerts and rankings. A query runs from its name to the semicolon.

-- name: vwap_by_symbol_5m
-- The volume-weighted average price, the yardstick for any order worked over minutes.
SELECT window.start AS start, symbol, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '5 minutes'), symbol;

-- name: vwap_by_symbol_12m_by_5m
-- A smoother VWAP for a chart: the last twelve minutes, drawn again every five.
SELECT window.start AS start, window.end AS end, symbol, sum(price * volume) / sum(volume) AS vwap
FROM trades
GROUP BY window(ts, '12 minutes', '5 minutes'), symbol;

-- name: vwap_by_symbol_so_far
-- The benchmark of the whole session, for orders that run all day.
SELECT symbol, sum(price * volume) / sum(volume) AS vwap, count(*) AS trades
FROM trades
GROUP BY symbol;

-- name: vwap_by_venue_15m
-- Does one exchange price a stock better than another?
SELECT window.start AS start, symbol, exchange, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '15 minutes'), symbol, exchange;

-- name: vwap_without_blocks_10m
-- VWAP that a single large print cannot bend.
SELECT window.start AS start, symbol, sum(price * volume) / sum(volume) AS vwap
FROM trades
WHERE volume < 10000
GROUP BY window(ts, '10 minutes'), symbol;

-- name: bars_1m
-- One-minute bars for charting: open, high, low, close, volume.
SELECT window.start AS start, symbol,
       min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS volume
FROM trades
GROUP BY window(ts, '1 minute'), symbol;

-- name: bars_5m
-- Five-minute bars with the number of trades behind each.
SELECT window.start AS start, symbol,
       min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       count(*) AS trades
FROM trades
GROUP BY window(ts, '5 minutes'), symbol;

-- name: bars_1h_from_half_past
-- Hourly bars that begin at half past, as the New York session does.
SELECT window.start AS start, symbol,
       min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close,
       sum(volume) AS volume
FROM trades
GROUP BY window(ts, '1 hour', '1 hour', '30 minutes'), symbol;

-- name: index_fund_bars_30s
-- Half-minute bars of the index funds, the market's pulse.
SELECT window.start AS start, symbol,
       min_by(price, ts) AS open, max(price) AS high, min(price) AS low, max_by(price, ts) AS close
FROM trades
WHERE symbol IN ('SPY', 'QQQ', 'IWM', 'DIA')
GROUP BY window(ts, '30 seconds'), symbol;

-- name: change_over_20m_by_4m
-- Momentum: how far each stock went in the last twenty minutes.
SELECT window.start AS start, symbol, max_by(price, ts) - min_by(price, ts) AS change
FROM trades
GROUP BY window(ts, '20 minutes', '4 minutes'), symbol;

-- name: last_print_by_exchange_1m
-- Is every feed alive? The last trade of each exchange; trades of the same instant are told apart by symbol.
SELECT window.start AS start, exchange, max(ts) AS last_seen, max_by(symbol, struct(ts, symbol)) AS last_symbol
FROM trades
GROUP BY window(ts, '1 minute'), exchange;

-- name: tape_10s
-- The tape's speed: trades, shares and dollars every ten seconds.
SELECT window.start AS start, count(*) AS trades, sum(volume) AS volume, sum(price * volume) AS turnover
FROM trades
GROUP BY window(ts, '10 seconds');

-- name: turnover_by_exchange_1m
-- Where the money trades, minute by minute.
SELECT window.start AS start, exchange, sum(price * volume) AS turnover, count(*) AS trades
FROM trades
GROUP BY window(ts, '1 minute'), exchange;

-- name: turnover_by_exchange_1h
-- The hourly report to each exchange's desk, with the average size of a trade.
SELECT window.start AS start, exchange, sum(price * volume) AS turnover, avg(volume) AS mean_size
FROM trades
GROUP BY window(ts, '1 hour'), exchange;

-- name: volume_by_symbol_13m_by_5m
-- Volume over a trailing window that is out of step with everybody's five-minute clock.
SELECT window.start AS start, symbol, sum(volume) AS volume, count(*) AS trades
FROM trades
GROUP BY window(ts, '13 minutes', '5 minutes'), symbol;

-- name: market_share_1h
-- Each exchange's share of a stock's volume, side by side.
SELECT window.start AS start, symbol,
       sum(volume) FILTER (WHERE exchange = 'NYSE') / sum(volume) AS nyse,
       sum(volume) FILTER (WHERE exchange = 'NASDAQ') / sum(volume) AS nasdaq,
       sum(volume) FILTER (WHERE exchange NOT IN ('NYSE', 'NASDAQ')) / sum(volume) AS elsewhere
FROM trades
GROUP BY window(ts, '1 hour'), symbol;

-- name: off_primary_30m
-- What trades away from the two listing exchanges.
SELECT window.start AS start, exchange, sum(volume) AS volume, count(DISTINCT symbol) AS symbols
FROM trades
WHERE exchange <> 'NYSE' AND exchange <> 'NASDAQ'
GROUP BY window(ts, '30 minutes'), exchange;

-- name: nasdaq_by_symbol_3m
-- One exchange's own view: what its members trade.
SELECT window.start AS start, symbol, sum(volume) AS volume, sum(price * volume) AS turnover
FROM trades
WHERE exchange = 'NASDAQ'
GROUP BY window(ts, '3 minutes'), symbol;

-- name: session_totals
-- One line for the whole session.
SELECT count(*) AS trades, sum(volume) AS volume, sum(price * volume) AS turnover,
       min(ts) AS opened, max(ts) AS closed
FROM trades;

-- name: session_totals_by_exchange
-- The closing report: trades, shares, largest and smallest print of each exchange.
SELECT exchange, count(*) AS trades, sum(volume) AS volume, max(volume) AS largest, min(volume) AS smallest
FROM trades
GROUP BY exchange;

-- name: daily_volume_by_symbol
-- The day's volume, to compare with the average of other days.
SELECT window.start AS day, symbol, sum(volume) AS volume, count(*) AS trades
FROM trades
GROUP BY window(ts, '1 day'), symbol;

-- name: volume_by_time_of_day
-- The shape of the session (heavy at the open and the close): volume by hour and minute.
SELECT hour(ts) AS hour, minute(ts) AS minute, sum(volume) AS volume
FROM trades
GROUP BY hour(ts), minute(ts);

-- name: load_by_first_letter_10s
-- Load of a matching system that spreads symbols over machines by their first letter.
SELECT window.start AS start, substr(symbol, 1, 1) AS letter, count(*) AS trades
FROM trades
GROUP BY window(ts, '10 seconds'), substr(symbol, 1, 1);

-- name: block_trades_5m
-- Block trades, by the old rule of ten thousand shares.
SELECT window.start AS start, symbol, count(*) AS blocks, sum(volume) AS volume, max(volume) AS largest
FROM trades
WHERE volume >= 10000
GROUP BY window(ts, '5 minutes'), symbol;

-- name: near_blocks_12m_by_5m
-- Trades just under the block rule: somebody may be hiding a large order in slices.
SELECT window.start AS start, symbol, count(*) AS trades, sum(volume) AS volume
FROM trades
WHERE volume >= 5000 AND volume < 10000
GROUP BY window(ts, '12 minutes', '5 minutes'), symbol;

-- name: million_dollar_trades_15m
-- Trades worth a million dollars or more, by the money rather than the shares.
SELECT window.start AS start, symbol, exchange, count(*) AS trades, max(price * volume) AS largest
FROM trades
WHERE price * volume >= 1000000
GROUP BY window(ts, '15 minutes'), symbol, exchange;

-- name: odd_lots_15m
-- Retail interest: trades of fewer than a hundred shares.
SELECT window.start AS start, symbol, count(*) AS trades, avg(volume) AS mean_size
FROM trades
WHERE volume < 100
GROUP BY window(ts, '15 minutes'), symbol;

-- name: round_lot_share_30m
-- How much of each exchange's flow comes in round lots.
SELECT window.start AS start, exchange,
       count(*) FILTER (WHERE volume % 100 = 0) / count(*) AS round_lots,
       sum(volume) FILTER (WHERE volume % 100 = 0) / sum(volume) AS round_lot_volume
FROM trades
GROUP BY window(ts, '30 minutes'), exchange;

-- name: block_share_10m_by_2m
-- How much of a stock's volume is institutional: the part that came in blocks.
SELECT window.start AS start, symbol,
       coalesce(sum(volume) FILTER (WHERE volume >= 10000), 0) AS in_blocks, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '10 minutes', '2 minutes'), symbol;

-- name: large_or_expensive_5m
-- Prints for the risk desk: a large trade of anything, or any real size in a stock above five hundred dollars.
SELECT window.start AS start, symbol, count(*) AS trades, sum(price * volume) AS turnover
FROM trades
WHERE volume >= 20000 OR (price >= 500 AND volume >= 1000)
GROUP BY window(ts, '5 minutes'), symbol;

-- name: middle_of_the_tape_10m
-- Ordinary trades only: middling prices, middling sizes. The base line against which outliers are judged.
SELECT window.start AS start, exchange, count(*) AS trades, avg(price) AS mean_price, avg(volume) AS mean_size
FROM trades
WHERE price BETWEEN 20 AND 200 AND volume BETWEEN 100 AND 2000
GROUP BY window(ts, '10 minutes'), exchange;

-- name: size_outliers_15m_by_7m
-- Both tails of trade size at once, tiny and huge, where most errors of entry are found.
SELECT window.start AS start, symbol,
       count_if(volume <= 10) AS tiny, count_if(volume >= 50000) AS huge, max(volume) AS largest
FROM trades
WHERE volume <= 10 OR volume >= 50000
GROUP BY window(ts, '15 minutes', '7 minutes'), symbol;

-- name: low_priced_stocks_30m
-- Stocks under twenty dollars, watched for pump-and-dump: range of the price and the volume behind it.
SELECT window.start AS start, symbol, min(price) AS low, max(price) AS high, sum(volume) AS volume
FROM trades
WHERE price < 20
GROUP BY window(ts, '30 minutes'), symbol;

-- name: low_priced_blocks_11m_by_4m
-- Blocks in cheap stocks, and medium sizes in the cheapest: the surveillance team's first filter.
SELECT window.start AS start, symbol, count(*) AS trades, sum(volume) AS volume
FROM trades
WHERE (price < 50 AND volume >= 10000) OR (price < 10 AND volume >= 2000)
GROUP BY window(ts, '11 minutes', '4 minutes'), symbol;

-- name: price_histogram_1h
-- At which price levels shares change hands, in steps of ten dollars.
SELECT window.start AS start, floor(price / 10) * 10 AS bucket, sum(volume) AS volume, count(*) AS trades
FROM trades
GROUP BY window(ts, '1 hour'), floor(price / 10);

-- name: volume_at_price_15m
-- Volume profile, dollar by dollar, of the stocks that day traders follow.
SELECT window.start AS start, symbol, floor(price) AS dollar, sum(volume) AS volume
FROM trades
WHERE symbol IN ('AAPL', 'TSLA', 'NVDA', 'AMD')
GROUP BY window(ts, '15 minutes'), symbol, floor(price);

-- name: size_bands_5m
-- Who trades where: retail, professional and institutional sizes on each exchange.
SELECT window.start AS start, exchange,
       CASE WHEN volume < 100 THEN 'odd lot' WHEN volume < 1000 THEN 'small'
            WHEN volume < 10000 THEN 'large' ELSE 'block' END AS band,
       count(*) AS trades, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '5 minutes'), exchange, band;

-- name: sizes_by_exchange_2h
-- Median, ninth decile and last percentile of trade size on each exchange.
SELECT window.start AS start, exchange, percentile(volume, array(0.5, 0.9, 0.99)) AS sizes
FROM trades
GROUP BY window(ts, '2 hours'), exchange;

-- name: technology_6m_by_2m
-- A technology portfolio's turnover over six minutes, every two.
SELECT window.start AS start, sum(price * volume) AS turnover, sum(volume) AS volume,
       count(DISTINCT symbol) AS symbols
FROM trades
WHERE symbol IN ('AAPL', 'MSFT', 'NVDA', 'AMD', 'INTC', 'CSCO', 'ORCL')
GROUP BY window(ts, '6 minutes', '2 minutes');

-- name: banks_by_symbol_10m
-- Bank stocks without the odd lots: range and volume.
SELECT window.start AS start, symbol, min(price) AS low, max(price) AS high, sum(volume) AS volume
FROM trades
WHERE symbol IN ('JPM', 'BAC', 'WFC', 'C', 'GS', 'MS') AND volume >= 100
GROUP BY window(ts, '10 minutes'), symbol;

-- name: oil_against_banks_30m
-- Sector rotation in one row: money into oil and money into banks.
SELECT window.start AS start,
       sum(price * volume) FILTER (WHERE symbol IN ('XOM', 'CVX')) AS oil,
       sum(price * volume) FILTER (WHERE symbol IN ('JPM', 'BAC', 'WFC', 'C', 'GS', 'MS')) AS banks
FROM trades
GROUP BY window(ts, '30 minutes');

-- name: stocks_only_1m
-- The market without the index funds, which trade for reasons of their own.
SELECT window.start AS start, count(*) AS trades, sum(volume) AS volume
FROM trades
WHERE symbol NOT IN ('SPY', 'QQQ', 'IWM', 'DIA')
GROUP BY window(ts, '1 minute');

-- name: desk_a_to_c_5m
-- The desk that makes markets in A to C.
SELECT window.start AS start, symbol, exchange, sum(volume) AS volume, min(price) AS low, max(price) AS high
FROM trades
WHERE symbol LIKE 'A%' OR symbol LIKE 'B%' OR symbol LIKE 'C%'
GROUP BY window(ts, '5 minutes'), symbol, exchange;

-- name: desk_m_to_z_5m
-- The desk that makes markets in the second half of the alphabet, by volume.
SELECT window.start AS start, symbol, sum(volume) AS volume, count(*) AS trades
FROM trades
WHERE symbol >= 'M'
GROUP BY window(ts, '5 minutes'), symbol;

-- name: apple_90s_by_30s
-- One stock, closely: a model that looks back ninety seconds and decides every thirty.
SELECT window.start AS start, sum(price * volume) / sum(volume) AS vwap, sum(volume) AS volume,
       max(price) - min(price) AS spread
FROM trades
WHERE symbol = 'AAPL'
GROUP BY window(ts, '90 seconds', '30 seconds');

-- name: volatility_by_symbol_10m
-- Standard deviation of the price, with its mean, to set the width of quotes.
SELECT window.start AS start, symbol, stddev(price) AS volatility, avg(price) AS mean_price
FROM trades
GROUP BY window(ts, '10 minutes'), symbol;

-- name: volatility_7m_by_3m
-- Short-term volatility on a clock of its own; range and slide have no common divisor.
SELECT window.start AS start, symbol, stddev_samp(price) AS volatility, count(*) AS trades
FROM trades
WHERE volume >= 100
GROUP BY window(ts, '7 minutes', '3 minutes'), symbol;

-- name: relative_volatility_1h
-- Volatility as a part of the price, so that cheap and expensive stocks compare.
SELECT window.start AS start, symbol,
       stddev_pop(price) / avg(price) AS relative_volatility, variance(price) AS variance
FROM trades
GROUP BY window(ts, '1 hour'), symbol;

-- name: size_distribution_shape
-- How lopsided trade sizes are on each exchange: the moments that a simulator has to match.
SELECT exchange, avg(volume) AS mean, stddev(volume) AS deviation,
       skewness(volume) AS skewness, kurtosis(volume) AS kurtosis
FROM trades
GROUP BY exchange;

-- name: size_moves_price_1h
-- Do large trades come at higher prices? The correlation of price and volume.
SELECT window.start AS start, symbol, corr(price, volume) AS correlation, count(*) AS trades
FROM trades
GROUP BY window(ts, '1 hour'), symbol
HAVING count(*) >= 10;

-- name: size_moves_price_by_venue
-- The same question put to the exchanges, over all that was seen.
SELECT symbol, exchange, covar_samp(price, volume) AS covariance, count(*) AS trades
FROM trades
GROUP BY symbol, exchange;

-- name: price_range_by_venue_9m_by_4m
-- High and low of a stock on each exchange: where they do not overlap there is arbitrage.
SELECT window.start AS start, symbol, exchange, min(price) AS low, max(price) AS high
FROM trades
GROUP BY window(ts, '9 minutes', '4 minutes'), symbol, exchange;

-- name: median_price_5m
-- A reference price that no single bad print can move.
SELECT window.start AS start, symbol, median(price) AS median_price, count(*) AS trades
FROM trades
GROUP BY window(ts, '5 minutes', '5 minutes', '1 minute'), symbol;

-- name: price_quartiles_20m
-- The middle half of the prices paid; an order filled outside it needs explaining.
SELECT window.start AS start, symbol, percentile_approx(price, array(0.25, 0.5, 0.75)) AS quartiles
FROM trades
GROUP BY window(ts, '20 minutes'), symbol;

-- name: symbols_active_5m
-- Breadth of the market: how many stocks traded at all.
SELECT window.start AS start, count(DISTINCT symbol) AS symbols, count(*) AS trades
FROM trades
GROUP BY window(ts, '5 minutes');

-- name: symbols_active_roughly_10m_by_90s
-- The same as a gauge that is refreshed often, where a near count is good enough.
SELECT window.start AS start, exchange, approx_count_distinct(symbol) AS symbols
FROM trades
GROUP BY window(ts, '10 minutes', '90 seconds'), exchange;

-- name: price_levels_by_symbol_15m
-- At how many different prices a stock traded: few for a calm book, many for a nervous one.
SELECT window.start AS start, symbol, count(DISTINCT price) AS price_levels, count(*) AS trades
FROM trades
GROUP BY window(ts, '15 minutes'), symbol;

-- name: broad_exchanges_1h
-- Exchanges on which at least a hundred different stocks traded within the hour.
SELECT window.start AS start, exchange, count(DISTINCT symbol) AS symbols, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '1 hour'), exchange
HAVING count(DISTINCT symbol) >= 100;

-- name: fast_movers_15m_by_5m
-- Stocks whose high is one per cent or more above their low within a quarter of an hour.
SELECT window.start AS start, symbol, min(price) AS low, max(price) AS high, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '15 minutes', '5 minutes'), symbol
HAVING max(price) >= 1.01 * min(price) AND count(*) >= 5;

-- name: single_print_symbols_10m
-- Illiquid moments: stocks with exactly one trade in ten minutes, whose price is not to be trusted.
SELECT window.start AS start, symbol, max(price) AS price, max(volume) AS volume
FROM trades
GROUP BY window(ts, '10 minutes', '10 minutes', '5 minutes'), symbol
HAVING count(*) = 1;

-- name: busiest_seconds
-- The twenty busiest seconds of the session, for sizing the feed handlers.
SELECT window.start AS second, count(*) AS trades, sum(volume) AS volume
FROM trades
GROUP BY window(ts, '1 second')
ORDER BY trades DESC, second
LIMIT 20;

-- name: most_traded_symbols
-- The ten stocks that moved the most money; dollars are summed as decimals, so that the ranking is exact.
SELECT symbol, sum(CAST(price * volume AS DECIMAL(18, 2))) AS turnover, sum(volume) AS volume
FROM trades
GROUP BY symbol
ORDER BY turnover DESC, symbol
LIMIT 10;

-- name: heaviest_bars_8m_by_3m
-- Where the session's volume came in: the heaviest stretches of eight minutes in any one stock.
SELECT window.start AS start, symbol, sum(volume) AS volume, max(volume) AS largest
FROM trades
WHERE price >= 5
GROUP BY window(ts, '8 minutes', '3 minutes'), symbol
HAVING count(*) > 1
ORDER BY volume DESC, start, symbol
LIMIT 25;

-- name: block_bursts
-- Runs of large trades in one stock with no gap of a minute. Session windows cannot be shared: plain Spark runs it.
SELECT symbol, min(ts) AS first_trade, max(ts) AS last_trade, count(*) AS trades, sum(volume) AS volume
FROM trades
WHERE volume >= 5000
GROUP BY session_window(ts, '1 minute'), symbol
HAVING count(*) >= 3;
