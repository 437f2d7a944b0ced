import { type HrTime, ValueType } from '@opentelemetry/api'
import type { Resource } from '@opentelemetry/resources'
import {
  AggregationTemporality,
  DataPointType,
  type HistogramMetricData,
  type MetricData,
  type MetricProducer,
} from '@opentelemetry/sdk-metrics'
import type { MetricObjectWithValues, MetricValueWithName, Registry } from 'prom-client'

type Value = MetricValueWithName<string>
type Metric = MetricObjectWithValues<Value>
type Labels = Record<string, string | number>

/** A histogram of Prometheus by one set of labels; its buckets are cumulative, by their upper bounds. */
type Series = { labels: Labels; buckets: [bound: number, count: number][]; sum: number; count: number }

const toHrTime = (ms: number): HrTime => [Math.floor(ms / 1000), (ms % 1000) * 1e6]

/** Reads the metrics of a Prometheus registry for an exporter of OpenTelemetry: the same names, the same values. */
export const createPrometheusProducer = (
  registry: Registry,
  resource: Resource,
  scope: { name: string; version: string },
): MetricProducer => {
  const startedAt = toHrTime(Date.now())
  return {
    collect: async () => {
      const metrics = (await registry.getMetricsAsJSON()) as unknown as Metric[]
      const span = { startTime: startedAt, endTime: toHrTime(Date.now()) }
      return {
        resourceMetrics: {
          resource,
          scopeMetrics: [{ scope, metrics: metrics.flatMap((metric) => toMetricData(metric, span)) }],
        },
        errors: [],
      }
    },
  }
}

type Span = { startTime: HrTime; endTime: HrTime }

const toMetricData = (metric: Metric, span: Span): MetricData[] => {
  const { name, help, type, values } = metric
  const descriptor = { name, description: help, unit: '', valueType: ValueType.DOUBLE }
  const cumulative = { aggregationTemporality: AggregationTemporality.CUMULATIVE }
  const points = values.map(({ labels, value }) => ({ ...span, attributes: labels as Labels, value }))
  const kind = String(type)
  if (kind === 'histogram')
    return [
      {
        ...cumulative,
        descriptor,
        dataPointType: DataPointType.HISTOGRAM,
        dataPoints: groupSeries(values).map((series) => toHistogramPoint(series, span)),
      } as HistogramMetricData,
    ]
  if (kind === 'counter')
    return [
      {
        ...cumulative,
        descriptor,
        dataPointType: DataPointType.SUM,
        isMonotonic: true,
        dataPoints: points,
      },
    ]
  // Summaries have no counterpart, and nothing here makes one.
  if (kind !== 'gauge') return []
  return [
    {
      ...cumulative,
      descriptor,
      dataPointType: DataPointType.GAUGE,
      dataPoints: points,
    },
  ]
}

const groupSeries = (values: readonly Value[]): Series[] => {
  const bySeries = new Map<string, Series>()
  for (const { labels: given, value, metricName = '' } of values) {
    const { le, ...labels } = given as Labels
    const id = JSON.stringify(labels)
    const series = bySeries.get(id) ?? { labels, buckets: [], sum: 0, count: 0 }
    bySeries.set(id, series)
    if (le !== undefined) series.buckets.push([Number(String(le).replace('+Inf', 'Infinity')), value])
    else if (metricName.endsWith('_sum')) series.sum = value
    else series.count = value
  }
  return [...bySeries.values()]
}

const toHistogramPoint = ({ labels, buckets, sum, count }: Series, span: Span) => {
  const ordered = buckets.toSorted(([a], [b]) => a - b)
  return {
    ...span,
    attributes: labels,
    value: {
      buckets: {
        boundaries: ordered.map(([bound]) => bound).filter(Number.isFinite),
        counts: ordered.map(([, reached], i) => reached - (ordered[i - 1]?.[1] ?? 0)),
      },
      sum,
      count,
    },
  }
}
