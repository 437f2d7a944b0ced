import {
  areRepliesTogether,
  excessLength,
  FORMATTING,
  hasEmoji,
  hasNewline,
  hasVariable,
  MAX_BUTTONS,
  maxButtonsByType,
  maxLengths,
  unlabelledButtons,
} from '../../../../catalog/templates/rules.ts'
import { isBlank } from '../../../../catalog/values.ts'
import {
  type DraftButton,
  type Draft,
  noFindings,
  type LintFinding,
  finding,
  type PlacedButton,
  type LintRule,
  type LintSubject,
} from './rule.ts'
import { oneLine, quote, suggest, withoutEmoji } from './text.ts'
import { isDynamic } from './urls.ts'

type ButtonField = Exclude<keyof DraftButton, 'type'>

const fields: readonly ButtonField[] = [
  'text',
  'url',
  'url_example',
  'phone_number',
  'coupon_code',
  'flow_id',
  'flow_action',
  'navigate_screen',
  'otp_type',
  'supported_apps',
  'zero_tap_terms_accepted',
]

/** The fields that this button uses. */
const usedFields = ({
  type,
  url,
  flow_action: action,
  otp_type: kind = 'COPY_CODE',
}: DraftButton): readonly ButtonField[] => {
  switch (type) {
    case 'URL':
      return ['text', 'url', ...(isDynamic(url ?? '') ? (['url_example'] as const) : [])]
    case 'PHONE_NUMBER':
      return ['text', 'phone_number']
    case 'COPY_CODE':
      return ['coupon_code']
    case 'FLOW':
      return [
        'text',
        'flow_id',
        'flow_action',
        ...(action === 'DATA_EXCHANGE' ? [] : (['navigate_screen'] as const)),
      ]
    case 'OTP':
      return [
        'text',
        'otp_type',
        ...(kind === 'COPY_CODE' ? [] : (['supported_apps'] as const)),
        ...(kind === 'ZERO_TAP' ? (['zero_tap_terms_accepted'] as const) : []),
      ]
    default:
      return ['text']
  }
}

/** Empty fields are ignored: clients send them along. */
const isEmpty = (value: DraftButton[ButtonField]): boolean =>
  value === undefined ||
  value === false ||
  (typeof value === 'string' ? isBlank(value) : value !== true && value.length === 0)

/** Checks every button that has a label. */
const checkLabels =
  (find: (text: string, placed: PlacedButton) => LintFinding[]) =>
  ({ buttons }: LintSubject): LintFinding[] =>
    buttons.flatMap((placed) =>
      placed.button.type === 'COPY_CODE' || isBlank(placed.button.text)
        ? noFindings
        : find(placed.button.text!, placed),
    )

/** The buttons of the message itself, not of cards. */
const ownButtons = ({ draft }: LintSubject): readonly DraftButton[] =>
  draft.carousel ? [] : (draft.buttons ?? [])

const formatLabels = (buttons: readonly DraftButton[]): string =>
  buttons.map(({ text, type }) => (isBlank(text) ? type : quote(text!))).join(', ')

const replies = (...texts: string[]) => texts.map((text) => ({ type: 'QUICK_REPLY', text }))
const shop = { type: 'URL', text: 'Shop', url: 'https://shop.example/' }
const call = { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550100001' }
const buttons = (...all: NonNullable<Draft['buttons']> | object[]) => ({ set: { buttons: all } })

/** Rules for all buttons together, and for fields that every type has. */
export const buttonRules: readonly LintRule[] = [
  {
    id: 'buttons.count',
    severity: 'error',
    source: 'spec',
    about: `At most ${MAX_BUTTONS} buttons.`,
    find: (subject) => {
      const { length } = ownButtons(subject)
      return length <= MAX_BUTTONS
        ? noFindings
        : finding(
            'buttons',
            `There are ${length} buttons; the provider accepts ${MAX_BUTTONS}.`,
            `Leave out ${length - MAX_BUTTONS}.`,
          )
    },
    breaks: { ...buttons(...replies(...'ABCDEFGHIJK')), at: 'buttons' },
    passes: buttons(...replies(...'ABCDEFGHIJ')),
  },
  {
    id: 'buttons.too_many_of_type',
    severity: 'error',
    source: 'guidelines',
    about: 'At most two URL buttons and one each of PHONE_NUMBER, COPY_CODE, FLOW, VOICE_CALL and OTP.',
    find: (subject) =>
      Object.entries(maxButtonsByType).flatMap(([type, max]) => {
        const places = ownButtons(subject).flatMap((button, i) => (button.type === type ? [i] : []))
        return places.length <= max
          ? noFindings
          : finding(
              `buttons[${places[max]}]`,
              `There are ${places.length} ${type} buttons; the provider accepts ${max}.`,
              `Leave out ${places.length - max}.`,
            )
      }),
    breaks: { ...buttons(shop, { ...shop, text: 'Sale' }, { ...shop, text: 'Help' }), at: 'buttons[2]' },
    passes: buttons(shop, { ...shop, text: 'Sale' }, call),
  },
  {
    id: 'buttons.grouping',
    severity: 'error',
    source: 'guidelines',
    about: 'Quick replies are together, before or after all other buttons.',
    find: (subject) => {
      const all = ownButtons(subject)
      if (areRepliesTogether(all.map(({ type }) => type))) return noFindings
      const order = [
        ...all.filter(({ type }) => type === 'QUICK_REPLY'),
        ...all.filter(({ type }) => type !== 'QUICK_REPLY'),
      ]
      return finding(
        'buttons',
        `Quick replies and other buttons are mixed: ${formatLabels(all)}.`,
        `Put the quick replies together: ${formatLabels(order)}.`,
      )
    },
    breaks: { ...buttons(...replies('Yes'), shop, ...replies('No')), at: 'buttons' },
    passes: buttons(...replies('Yes', 'No'), shop),
  },
  {
    id: 'buttons.text_required',
    severity: 'error',
    source: 'guidelines',
    about: 'Every button has a label, except for COPY_CODE and OTP.',
    find: ({ buttons: all }) =>
      all.flatMap(({ path, button }) =>
        !unlabelledButtons.includes(button.type) && isBlank(button.text)
          ? finding(
              `${path}.text`,
              `The ${button.type} button has no label.`,
              'Write in text what it does, in one to three words.',
            )
          : noFindings,
      ),
    breaks: { ...buttons({ type: 'VOICE_CALL' }), at: 'buttons[0].text' },
    passes: buttons({ type: 'COPY_CODE', coupon_code: 'SPRING25' }),
  },
  {
    id: 'buttons.text_length',
    severity: 'error',
    source: 'spec',
    about: `At most ${maxLengths.label} characters.`,
    find: checkLabels((text, { path }) => {
      const over = excessLength(text, maxLengths.label)
      return over === 0
        ? noFindings
        : finding(
            `${path}.text`,
            `The label has ${maxLengths.label + over} characters; the provider accepts ${maxLengths.label}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...buttons(...replies('I would like to know much more')), at: 'buttons[0].text' },
    passes: buttons(...replies('I want to know much more.')),
  },
  {
    id: 'buttons.text_characters',
    severity: 'error',
    source: 'guidelines',
    about: 'No line breaks, emoji, formatting characters (`*`, `_`, `~`, `` ` ``) or variables in labels.',
    find: checkLabels((text, { path }) => {
      const bad = hasNewline(text)
        ? 'a line break'
        : hasEmoji(text)
          ? 'an emoji'
          : hasVariable(text)
            ? 'a variable'
            : FORMATTING.test(text)
              ? 'a formatting character'
              : undefined
      return bad === undefined
        ? noFindings
        : finding(
            `${path}.text`,
            `The label ${quote(text)} contains ${bad}.`,
            suggest(
              oneLine(withoutEmoji(text.replaceAll(/\{\{[^{}]*\}\}|\{\{|[*_~`]/g, ''))),
              'Write plain words on one line.',
            ),
          )
    }),
    breaks: { ...buttons(...replies('Yes 👍')), at: 'buttons[0].text' },
    passes: buttons(...replies('Yes!')),
  },
  {
    id: 'buttons.text_unique',
    severity: 'error',
    source: 'practice',
    about: 'No two buttons, of the message or of one card, have the same label.',
    find: checkLabels((text, { path, place, neighbours }) =>
      neighbours
        .slice(0, place)
        .some((other) => other.type !== 'COPY_CODE' && other.text?.trim() === text.trim())
        ? finding(
            `${path}.text`,
            `Another button also has the label ${quote(text.trim())}.`,
            'Give each button a label of its own.',
          )
        : noFindings,
    ),
    breaks: { ...buttons(...replies('Yes', 'Yes ')), at: 'buttons[1].text' },
    passes: buttons(...replies('Yes', 'yes')),
  },
  {
    id: 'buttons.unused',
    severity: 'warning',
    source: 'service',
    about: 'No fields that the type of button does not use; they are ignored.',
    find: ({ buttons: all }) =>
      all.flatMap(({ path, button }) => {
        const used = usedFields(button)
        const idle = fields.filter((field) => !used.includes(field) && !isEmpty(button[field]))
        return idle.flatMap((field) =>
          finding(
            `${path}.${field}`,
            `${describeButton(button, field)} does not use ${field}.`,
            `Leave out ${field}.`,
          ),
        )
      }),
    breaks: { ...buttons({ ...shop, url_example: 'https://shop.example/17' }), at: 'buttons[0].url_example' },
    passes: buttons({ ...shop, url: 'https://shop.example/{{1}}', url_example: 'https://shop.example/17' }),
  },
]

const describeButton = ({ type }: DraftButton, field: ButtonField): string =>
  type === 'URL' && field === 'url_example'
    ? 'A URL without a variable'
    : type === 'OTP' && field === 'supported_apps'
      ? 'An OTP button of type COPY_CODE'
      : type === 'OTP' && field === 'zero_tap_terms_accepted'
        ? 'An OTP button that is not ZERO_TAP'
        : type === 'FLOW' && field === 'navigate_screen'
          ? 'A flow with DATA_EXCHANGE'
          : `A ${type} button`
