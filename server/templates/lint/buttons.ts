import {
  type Button,
  type Draft,
  fine,
  type Finding,
  found,
  type Placed,
  type Rule,
  type Subject,
} from './rule.ts'
import { excess, hasEmoji, hasNewline, isBlank, oneLine, quote, suggest, withoutEmoji } from './text.ts'
import { isDynamic } from './urls.ts'

const MOST_BUTTONS = 10
const LONGEST_LABEL = 25

type ButtonType = Button['type']
type ButtonField = Exclude<keyof Button, 'type'>

/** How many of a type there may be; of others as many as buttons. */
const mostOf: Partial<Record<ButtonType, number>> = {
  URL: 2,
  PHONE_NUMBER: 1,
  COPY_CODE: 1,
  FLOW: 1,
  VOICE_CALL: 1,
  OTP: 1,
}

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
]

/** The fields that say something on this button. */
const usedBy = ({
  type,
  url,
  flow_action: action,
  otp_type: kind = 'COPY_CODE',
}: Button): readonly ButtonField[] => {
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
      return ['text', 'otp_type', ...(kind === 'COPY_CODE' ? [] : (['supported_apps'] as const))]
    default:
      return ['text']
  }
}

/** Says nothing: clients send empty fields along. */
const isEmpty = (value: Button[ButtonField]): boolean =>
  value === undefined || (typeof value === 'string' ? isBlank(value) : value.length === 0)

/** Runs over every button that has a label. */
const onLabel =
  (find: (text: string, placed: Placed) => Finding[]) =>
  ({ buttons }: Subject): Finding[] =>
    buttons.flatMap((placed) =>
      placed.button.type === 'COPY_CODE' || isBlank(placed.button.text)
        ? fine
        : find(placed.button.text!, placed),
    )

/** The buttons of the message itself. */
const ownButtons = ({ draft }: Subject): readonly Button[] => (draft.carousel ? [] : (draft.buttons ?? []))

const labels = (buttons: readonly Button[]): string =>
  buttons.map(({ text, type }) => (isBlank(text) ? type : quote(text!))).join(', ')

const replies = (...texts: string[]) => texts.map((text) => ({ type: 'QUICK_REPLY', text }))
const shop = { type: 'URL', text: 'Shop', url: 'https://shop.example/' }
const call = { type: 'PHONE_NUMBER', text: 'Call', phone_number: '+15550100001' }
const buttons = (...all: NonNullable<Draft['buttons']> | object[]) => ({ set: { buttons: all } })

/** All buttons together, and what every type has. */
export const buttonRules: readonly Rule[] = [
  {
    id: 'buttons.count',
    severity: 'error',
    about: `At most ${MOST_BUTTONS} buttons.`,
    find: (subject) => {
      const { length } = ownButtons(subject)
      return length <= MOST_BUTTONS
        ? fine
        : found(
            'buttons',
            `There are ${length} buttons; the provider takes ${MOST_BUTTONS}.`,
            `Leave out ${length - MOST_BUTTONS}.`,
          )
    },
    breaks: { ...buttons(...replies(...'ABCDEFGHIJK')), at: 'buttons' },
    passes: buttons(...replies(...'ABCDEFGHIJ')),
  },
  {
    id: 'buttons.too_many_of_type',
    severity: 'error',
    about: 'At most two URL buttons and one each of PHONE_NUMBER, COPY_CODE, FLOW, VOICE_CALL and OTP.',
    find: (subject) =>
      Object.entries(mostOf).flatMap(([type, most]) => {
        const places = ownButtons(subject).flatMap((button, i) => (button.type === type ? [i] : []))
        return places.length <= most
          ? fine
          : found(
              `buttons[${places[most]}]`,
              `There are ${places.length} ${type} buttons; the provider takes ${most}.`,
              `Leave out ${places.length - most}.`,
            )
      }),
    breaks: { ...buttons(shop, { ...shop, text: 'Sale' }, { ...shop, text: 'Help' }), at: 'buttons[2]' },
    passes: buttons(shop, { ...shop, text: 'Sale' }, call),
  },
  {
    id: 'buttons.grouping',
    severity: 'error',
    about: 'Quick replies stand together, before or after all other buttons.',
    find: (subject) => {
      const all = ownButtons(subject)
      const turns = all.filter(
        (button, i) => i > 0 && (button.type === 'QUICK_REPLY') !== (all[i - 1]!.type === 'QUICK_REPLY'),
      ).length
      if (turns <= 1) return fine
      const order = [
        ...all.filter(({ type }) => type === 'QUICK_REPLY'),
        ...all.filter(({ type }) => type !== 'QUICK_REPLY'),
      ]
      return found(
        'buttons',
        `Quick replies and other buttons are mixed: ${labels(all)}.`,
        `Put the quick replies together: ${labels(order)}.`,
      )
    },
    breaks: { ...buttons(...replies('Yes'), shop, ...replies('No')), at: 'buttons' },
    passes: buttons(...replies('Yes', 'No'), shop),
  },
  {
    id: 'buttons.text_required',
    severity: 'error',
    about: 'Every button has a label, but for COPY_CODE and OTP.',
    find: ({ buttons: all }) =>
      all.flatMap(({ path, button }) =>
        button.type !== 'COPY_CODE' && button.type !== 'OTP' && isBlank(button.text)
          ? found(
              `${path}.text`,
              `The ${button.type} button has no label.`,
              'Write in text what it does, in one to three words.',
            )
          : fine,
      ),
    breaks: { ...buttons({ type: 'VOICE_CALL' }), at: 'buttons[0].text' },
    passes: buttons({ type: 'COPY_CODE', coupon_code: 'SPRING25' }),
  },
  {
    id: 'buttons.text_length',
    severity: 'error',
    about: `At most ${LONGEST_LABEL} characters.`,
    find: onLabel((text, { path }) => {
      const over = excess(text, LONGEST_LABEL)
      return over === 0
        ? fine
        : found(
            `${path}.text`,
            `The label has ${LONGEST_LABEL + over} characters; the provider takes ${LONGEST_LABEL}.`,
            `Shorten it by ${over}.`,
          )
    }),
    breaks: { ...buttons(...replies('I would like to know much more')), at: 'buttons[0].text' },
    passes: buttons(...replies('I want to know much more.')),
  },
  {
    id: 'buttons.text_characters',
    severity: 'error',
    about: 'No line breaks, emoji or variables in labels.',
    find: onLabel((text, { path }) => {
      const bad = hasNewline(text)
        ? 'a line break'
        : hasEmoji(text)
          ? 'an emoji'
          : text.includes('{{')
            ? 'a variable'
            : undefined
      return bad === undefined
        ? fine
        : found(
            `${path}.text`,
            `The label ${quote(text)} holds ${bad}.`,
            suggest(
              oneLine(withoutEmoji(text.replaceAll(/\{\{[^{}]*\}\}/g, '').replaceAll('{{', ''))),
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
    about: 'No two buttons, of the message or of one card, have the same label.',
    find: onLabel((text, { path, place, neighbours }) =>
      neighbours
        .slice(0, place)
        .some((other) => other.type !== 'COPY_CODE' && other.text?.trim() === text.trim())
        ? found(
            `${path}.text`,
            `Another button has the label ${quote(text.trim())} too.`,
            'Give each button a label of its own.',
          )
        : fine,
    ),
    breaks: { ...buttons(...replies('Yes', 'Yes ')), at: 'buttons[1].text' },
    passes: buttons(...replies('Yes', 'yes')),
  },
  {
    id: 'buttons.unused',
    severity: 'warning',
    about: 'No field that the type of button does not use: it is left out.',
    find: ({ buttons: all }) =>
      all.flatMap(({ path, button }) => {
        const used = usedBy(button)
        const idle = fields.filter((field) => !used.includes(field) && !isEmpty(button[field]))
        return idle.flatMap((field) =>
          found(`${path}.${field}`, `${whatOf(button, field)} does not use ${field}.`, `Leave out ${field}.`),
        )
      }),
    breaks: { ...buttons({ ...shop, url_example: 'https://shop.example/17' }), at: 'buttons[0].url_example' },
    passes: buttons({ ...shop, url: 'https://shop.example/{{1}}', url_example: 'https://shop.example/17' }),
  },
]

const whatOf = ({ type }: Button, field: ButtonField): string =>
  type === 'URL' && field === 'url_example'
    ? 'A URL without a variable'
    : type === 'OTP' && field === 'supported_apps'
      ? 'An OTP button of the kind COPY_CODE'
      : type === 'FLOW' && field === 'navigate_screen'
        ? 'A flow with DATA_EXCHANGE'
        : `A ${type} button`
